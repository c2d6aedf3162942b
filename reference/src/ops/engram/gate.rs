//! Card of [`EngramGate`].

use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd, sum, threads,
};
use tandem_hal::{EngramGate, Extents, Real, Result, Row, Sym};

/// Floor of the similarity's magnitude.
const FLOOR: f64 = 1e-6;

/// Sums of three factors and of squares in fp32, a root and a division or two each.
fn gamma(d: &EngramGate) -> f64 {
    (d.width.div_ceil(32) as f64 + 24.0) * f64::from(f32::EPSILON)
}

/// How much of the value is added for a similarity.
pub(super) fn gate(similarity: f64) -> f64 {
    let size = similarity.abs();
    // Written so that NaN passes.
    let root = if size < FLOOR { FLOOR } else { size }.sqrt();
    1.0 / (1.0 + libm::exp(-root.copysign(similarity)))
}

/// One stream of one row.
struct Stream<'a> {
    h: &'a [f32],
    key: &'a [f32],
    /// Products of the two weights; exact.
    weight: &'a [f64],
}

impl Stream<'_> {
    /// `rstd(h) rstd(key) / sqrt(width)`.
    #[inline(always)]
    fn scale(&self, eps: f64) -> f64 {
        let width = self.h.len() as f64;
        let rstd = |v: &[f32]| 1.0 / (sum::in_f32_range(sum::squares(v)) / width + eps).sqrt();
        rstd(self.h) * rstd(self.key) / width.sqrt()
    }
    #[inline(always)]
    fn term(&self, i: usize) -> f64 {
        f64::from(self.h[i]) * self.weight[i] * f64::from(self.key[i])
    }
    #[inline(always)]
    fn similarity(&self, eps: f64) -> f64 {
        sum::in_f32_range(sum::total(self.h.len(), |i| self.term(i))) * self.scale(eps)
    }
    /// The gate, and how far an error of `gamma` of its similarity's terms can move it.
    fn gate_within(&self, eps: f64, gamma: f64) -> (f64, f64) {
        let d = self.similarity(eps);
        let size = sum::total(self.h.len(), |i| self.term(i).abs()) * self.scale(eps);
        // An infinite similarity leaves nothing to err about.
        let error = if d.is_finite() { gamma * size } else { 0.0 };
        (gate(d), (gate(d + error) - gate(d - error)).abs())
    }
}

/// Products of the weights of every stream.
fn weights(io: &Host<'_, EngramGate>, streams: usize) -> Vec<Vec<f64>> {
    let product = |s: usize| {
        let (q, k) = (io.q_weight.row(s), io.k_weight.row(s));
        q.iter().zip(k.iter()).map(|(q, k)| f64::from(*q) * f64::from(*k)).collect()
    };
    (0..streams).map(product).collect()
}

/// The streams of row `t` with the value added, in turn; `None` for a row that stays.
fn added(
    d: &EngramGate,
    io: &Host<'_, EngramGate>,
    weights: &[Vec<f64>],
    t: usize,
) -> Option<Vec<Vec<f64>>> {
    if io.masked.int(0, t) != 0 {
        return None;
    }
    let (width, eps) = (d.width as usize, f64::from(d.eps.value()));
    let kv = io.kv.row(t);
    let (keys, value) = kv.split_at(d.streams as usize * width);
    let streams = keys.chunks_exact(width).zip(weights).enumerate();
    let one = |(s, (key, weight)): (usize, (&[f32], &Vec<f64>))| {
        let h = io.streams.read().row(t * weights.len() + s).into_owned();
        let stream = Stream { h: &h, key, weight };
        let g = simd::vectorised(
            #[inline(always)]
            || gate(stream.similarity(eps)),
        );
        h.iter().zip(value).map(|(h, v)| f64::from(h + g as f32 * v)).collect()
    };
    Some(streams.map(one).collect())
}

/// Magnitudes of [`added`], a stream's row each.
fn magnitudes(
    d: &EngramGate,
    io: &Host<'_, EngramGate>,
    weights: &[Vec<f64>],
    t: usize,
) -> Vec<Vec<f64>> {
    let (width, eps) = (d.width as usize, f64::from(d.eps.value()));
    let kv = io.kv.row(t);
    let (keys, value) = kv.split_at(d.streams as usize * width);
    let streams = keys.chunks_exact(width).zip(weights).enumerate();
    let one = |(s, (key, weight)): (usize, (&[f32], &Vec<f64>))| {
        let h = io.streams.read().row(t * weights.len() + s).into_owned();
        let masked = io.masked.int(0, t) != 0;
        let (g, spread) = Stream { h: &h, key, weight }.gate_within(eps, gamma(d));
        let size = |v: &f32| f64::from(v.abs()) * (g + spread / gamma(d));
        let terms = h.iter().zip(value);
        terms.map(|(h, v)| f64::from(h.abs()) + if masked { 0.0 } else { size(v) }).collect()
    };
    streams.map(one).collect()
}

/// With the cost of an element in operations; 0 keeps to one thread.
fn run(d: &EngramGate, mut io: Host<'_, EngramGate>, operations: usize) {
    let (streams, tokens) = (d.streams as usize, io.masked.cols());
    let weights = weights(&io, streams);
    if io.streams.wants_magnitude() {
        for t in 0..tokens {
            for (s, row) in magnitudes(d, &io, &weights, t).iter().enumerate() {
                io.streams.set_magnitude(t * streams + s, row);
            }
        }
    }
    let operations = operations * streams * d.width as usize;
    let rows = threads::collect(tokens, operations, |t| added(d, &io, &weights, t));
    for (t, row) in rows.iter().enumerate() {
        for (s, values) in row.iter().flatten().enumerate() {
            io.streams.set_row(t * streams + s, values);
        }
    }
}

fn case(streams: u64, width: u64, tokens: u64) -> (EngramGate, Extents) {
    let d = EngramGate { streams, width, eps: Real::new(1e-20) };
    (d, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for EngramGate {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(d, io, 3);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: gamma(self) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let width = choices.pick(&[1, 4, 7, 64, 100, 256]);
        case(choices.between(1, 4), width, choices.between(0, 6))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(4, 256, 0), case(1, 1, 1), case(4, 5120, 2), case(2, 33, 5)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
