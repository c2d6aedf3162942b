//! Card of [`Filter`].

use crate::{Card, Choices, Compute, Context, Host, Tolerance, order, threads};
use crate::{blocked_row, scalar_row};
use tandem_hal::{Extents, Filter, FilterIo, Result, Row, Sym};

/// What a request asks of one row.
#[derive(Clone, Copy)]
struct Settings {
    temperature: f32,
    top_k: i32,
    top_p: f32,
    min_p: f32,
}

/// Temperatures up to this are greedy.
const GREEDY: f32 = 1e-5;
/// How nearly a sum must reach `top_p`.
const REACH: f64 = 1e-6;

/// All mass at `id`.
fn certain(vocab: usize, id: usize) -> Vec<f64> {
    (0..vocab).map(|x| f64::from(u8::from(x == id))).collect()
}

/// The filtered distribution of one row.
fn filter(logits: &[f32], settings: Settings) -> Vec<f64> {
    if settings.temperature.is_nan() || logits.iter().any(|l| l.is_nan()) {
        return vec![f64::NAN; logits.len()];
    }
    let top = order::first(logits);
    if settings.temperature <= GREEDY || logits[top] == f32::NEG_INFINITY {
        return certain(logits.len(), top);
    }
    let mut p = softmax(logits, logits[top], settings.temperature);
    let best = p[top];
    if let Some(chosen) = chosen(logits, &p, settings) {
        let mut kept = vec![0.0; p.len()];
        chosen.iter().for_each(|x| kept[*x] = p[*x]);
        p = kept;
    }
    // A limit above 1 would keep nothing.
    let least = f64::from(settings.min_p.min(1.0)) * best;
    if settings.min_p > 0.0 {
        p.iter_mut().filter(|p| **p < least).for_each(|p| *p = 0.0);
    }
    let mass: f64 = p.iter().sum();
    p.iter().map(|p| p / mass).collect()
}

/// `softmax(logits / temperature)`, the largest logit being `max`.
fn softmax(logits: &[f32], max: f32, temperature: f32) -> Vec<f64> {
    let temperature = f64::from(temperature);
    let weight = |l: &f32| match *l {
        l if l == max => 1.0,
        l if l == f32::NEG_INFINITY || max == f32::INFINITY => 0.0,
        l => libm::exp((f64::from(l) - f64::from(max)) / temperature),
    };
    let weights: Vec<f64> = logits.iter().map(weight).collect();
    let mass: f64 = weights.iter().sum();
    weights.iter().map(|w| w / mass).collect()
}

/// What `top_k` and `top_p` leave, best first; `None` when neither limits.
fn chosen(logits: &[f32], p: &[f64], settings: Settings) -> Option<Vec<usize>> {
    let top_k = usize::try_from(settings.top_k).ok().filter(|k| (1..p.len()).contains(k));
    let top_p = (settings.top_p < 1.0).then(|| f64::from(settings.top_p) - REACH);
    let mut ids = match (top_k, top_p) {
        (None, None) => return None,
        _ => order::best(logits, top_k.unwrap_or(p.len())),
    };
    if let Some(top_p) = top_p {
        let mut sum = 0.0;
        let reached = ids.iter().position(|x| {
            sum += p[*x];
            sum >= top_p
        });
        ids.truncate(reached.map_or(ids.len(), |at| at + 1));
    }
    Some(ids)
}

/// Fp32: the difference, its division and the exponential lose an ulp or two, the argument before
/// the exponential as many ulps as it is large, two sums over a tree and their divisions some more.
const GAMMA: f64 = f32::EPSILON as f64;

fn magnitudes(logits: &[f32], p: &[f64], temperature: f32) -> Vec<f64> {
    let max = logits[order::first(logits)];
    let argument = |l: f32| match l {
        l if l == max => 0.0,
        l => ((f64::from(l) - f64::from(max)) / f64::from(temperature)).abs(),
    };
    // What may be flushed below the smallest normal number, before the division by the kept mass.
    let flushed = p.len() as f64 * f64::from(f32::MIN_POSITIVE) / GAMMA;
    let one =
        |(p, l): (&f64, &f32)| if *p > 0.0 { p * (argument(*l) + 32.0) + flushed } else { 0.0 };
    p.iter().zip(logits).map(one).collect()
}

/// Filters all rows, each for so many operations.
fn run(io: Host<'_, Filter>, operations: usize) {
    let FilterIo { logits, temperature, top_k, top_p, min_p, mut p } = io;
    if p.is_empty() {
        return;
    }
    let settings = |t: usize| Settings {
        temperature: temperature.at(0, t),
        top_k: top_k.int(0, t),
        top_p: top_p.at(0, t),
        min_p: min_p.at(0, t),
    };
    let one = |t: usize| filter(&logits.row(t), settings(t));
    for (t, values) in threads::collect(logits.rows(), operations, one).iter().enumerate() {
        p.set_row(t, values);
        if p.wants_magnitude() {
            p.set_magnitude(t, &magnitudes(&logits.row(t), values, settings(t).temperature));
        }
    }
}

fn case(vocab: u64, tokens: u64) -> (Filter, Extents) {
    (Filter { vocab }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Filter {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    // An exponential and a place in the order for each id.
                    run(io, 50 * d.vocab as usize);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: GAMMA }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 2, 3, 10, 31, 32, 33, 100, 640]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(3, 65), case(10, 12), case(10, 0), case(2048, 6)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128].iter().map(|t| case(129_280, *t)).collect()
    }
}
