//! Check values, and the rows against each other.

use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use crate::{Card, Host, Random};
use tandem_hal::{
    Draw, DrawIo, Enc, Filter, FilterIo, LogProbs, LogProbsIo, MaskLogits, MaskLogitsIo, Penalise,
    PenaliseIo,
};

fn reals(shape: &[u64], values: &[f32]) -> Buffer {
    Buffer::of(Enc::F32, shape, values)
}
fn compute<D: Card>(d: &D, io: Host<'_, D>) {
    alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
}
fn near(got: &[f32], want: &[f32], bound: f32) {
    let close = got.iter().zip(want).all(|(g, w)| (g - w).abs() <= bound || g == w);
    assert!(close && got.len() == want.len(), "got {got:?}, want {want:?}");
}

/// Temperature, top_k, top_p, min_p.
type Settings = (f32, i32, f32, f32);

/// Nothing but a temperature of 1.
const NEUTRAL: Settings = (1.0, 0, 1.0, 0.0);

fn filter(logits: &[f32], settings: Settings) -> Vec<f32> {
    let n = logits.len() as u64;
    let one = |v: f32| reals(&[1], &[v]);
    let (temperature, top_p, min_p) = (one(settings.0), one(settings.2), one(settings.3));
    let (logits, top_k) = (reals(&[1, n], logits), Buffer::ints(&[1], &[settings.1]));
    let mut p = Buffer::filled(Enc::F32, &[1, n], 0xA5);
    let io = FilterIo {
        logits: logits.tensor(),
        temperature: temperature.tensor(),
        top_k: top_k.tensor(),
        top_p: top_p.tensor(),
        min_p: min_p.tensor(),
        p: p.tensor_mut(),
    };
    compute(&Filter { vocab: n }, io);
    p.values()
}

fn draw(p: &[f32], uniforms: &[f32]) -> Vec<i32> {
    let (n, vocab) = (uniforms.len() as u64, p.len() as u64);
    let (p, uniform) = (reals(&[n, vocab], &p.repeat(uniforms.len())), reals(&[n], uniforms));
    let mut token = Buffer::filled(Enc::I32, &[n], 0xA5);
    let io = DrawIo { p: p.tensor(), uniform: uniform.tensor(), token: token.tensor_mut() };
    compute(&Draw { vocab }, io);
    token.integers()
}

/// Logits of the probabilities 0.5, 0.3, 0.2.
fn three() -> Vec<f32> {
    [0.5f64, 0.3, 0.2].map(|p| libm::log(p) as f32).to_vec()
}

#[test]
fn c077_limits_of_sampling() {
    let logits: Vec<f32> = (0..10).map(|i| (i as f32 * 0.7).sin()).collect();
    let whole = filter(&logits, NEUTRAL);
    let best = filter(&logits, (0.0, 0, 1.0, 0.0));
    assert_eq!(best.iter().sum::<f32>(), 1.0);
    assert_eq!(best[2], 1.0, "sin 1.4 is the largest");
    for k in [11, 10, 0, -1] {
        assert_eq!(filter(&logits, (1.0, k, 1.0, 0.0)), whole, "top_k {k}");
    }
    let greedy = [(1.0, 1, 1.0, 0.0), (1e-9, 0, 1.0, 0.0), (-1.0, 0, 1.0, 0.0)];
    let single = [(1.0, 0, 0.0, 0.0), (1.0, 0, 1.0, 1.0), (1.0, 0, 1.0, 2.0)];
    for settings in greedy.into_iter().chain(single) {
        assert_eq!(filter(&logits, settings), best, "{settings:?}");
    }
    assert!(filter(&logits, (f32::NAN, 0, 1.0, 0.0)).iter().all(|p| p.is_nan()));
}

#[test]
fn limits_combine() {
    near(&filter(&three(), NEUTRAL), &[0.5, 0.3, 0.2], 1e-7);
    near(&filter(&three(), (1.0, 2, 1.0, 0.0)), &[0.625, 0.375, 0.0], 1e-7);
    // 0.5 and 0.3 reach 0.8, although the nearest f32 is a little more.
    near(&filter(&three(), (1.0, 0, 0.8, 0.0)), &[0.625, 0.375, 0.0], 1e-7);
    near(&filter(&three(), (1.0, 0, 0.81, 0.0)), &[0.5, 0.3, 0.2], 1e-7);
    near(&filter(&three(), (1.0, 0, 0.5, 0.0)), &[1.0, 0.0, 0.0], 0.0);
    near(&filter(&three(), (1.0, 0, 1.0, 0.5)), &[0.625, 0.375, 0.0], 1e-7);
    // Sums of top_p are those before renormalising: top_k left 0.8 of the mass, below 0.9.
    near(&filter(&three(), (1.0, 2, 0.9, 0.0)), &[0.625, 0.375, 0.0], 1e-7);
    // At temperature 2: roots, renormalised.
    let roots = [0.5f32, 0.3, 0.2].map(f32::sqrt);
    let sum: f32 = roots.iter().sum();
    near(&filter(&three(), (2.0, 0, 1.0, 0.0)), &roots.map(|r| r / sum), 1e-6);
}

#[test]
fn ties_and_infinities_of_a_filter() {
    let inf = f32::INFINITY;
    assert_eq!(filter(&[1.0, 3.0, 3.0], (0.0, 0, 1.0, 0.0)), [0.0, 1.0, 0.0]);
    assert_eq!(filter(&[3.0, 1.0, 3.0, 3.0], (1.0, 2, 1.0, 0.0)), [0.5, 0.0, 0.5, 0.0]);
    assert_eq!(filter(&[-inf, 0.0, -inf, 0.0], NEUTRAL), [0.0, 0.5, 0.0, 0.5]);
    assert_eq!(filter(&[-inf, 0.0, -inf], (inf, 3, 1.0, 0.0)), [0.0, 1.0, 0.0]);
    assert_eq!(filter(&[-inf; 3], NEUTRAL), [1.0, 0.0, 0.0]);
    assert_eq!(filter(&[inf, 5.0, inf], NEUTRAL), [0.5, 0.0, 0.5]);
    assert!(filter(&[1.0, f32::NAN], (0.0, 0, 1.0, 0.0)).iter().all(|p| p.is_nan()));
}

#[test]
fn draws_walk_the_ids_upward() {
    let p = [0.5, 0.0, 0.25, 0.25];
    let uniforms = [0.0, 0.49, 0.5, 0.74, 0.75, 1.0 - f32::EPSILON / 2.0];
    assert_eq!(draw(&p, &uniforms), [0, 0, 2, 2, 3, 3]);
    assert_eq!(draw(&[0.0, 0.0, 0.1], &[0.0]), [2]);
    // A mass below one, as rounding leaves it, is a mass.
    assert_eq!(draw(&[0.1, 0.1], &[0.49, 0.51]), [0, 1]);
    for bad in [[0.0, 0.0], [f32::NAN, 1.0], [0.5, f32::INFINITY]] {
        assert_eq!(draw(&bad, &[0.5]), [-1], "{bad:?}");
    }
}

#[test]
fn c053_frequencies_without_drafts() {
    let mut random = Random::new(53, 0);
    let uniforms: Vec<f32> = (0..10_000).map(|_| random.unit()).collect();
    for (settings, want) in [(NEUTRAL, [5000, 3000, 2000]), ((1.0, 2, 1.0, 0.0), [6250, 3750, 0])] {
        let tokens = draw(&filter(&three(), settings), &uniforms);
        let count = |x: i32| tokens.iter().filter(|t| **t == x).count() as i64;
        let counts = [count(0), count(1), count(2)];
        let close = counts.iter().zip(want).all(|(c, w)| c.abs_diff(w) <= 150);
        assert!(close && (want[2] > 0 || counts[2] == 0), "got {counts:?}, want {want:?}");
    }
}

fn log_probs(logits: &[f32], token: i32, top: u64) -> (f32, Vec<i32>, Vec<f32>) {
    let vocab = logits.len() as u64;
    let (logits, token) = (reals(&[1, vocab], logits), Buffer::ints(&[1], &[token]));
    let mut chosen = Buffer::filled(Enc::F32, &[1], 0xA5);
    let mut top_id = Buffer::filled(Enc::I32, &[1, top], 0xA5);
    let mut best = Buffer::filled(Enc::F32, &[1, top], 0xA5);
    let io = LogProbsIo {
        logits: logits.tensor(),
        token: token.tensor(),
        chosen: chosen.tensor_mut(),
        top_id: top_id.tensor_mut(),
        top: best.tensor_mut(),
    };
    compute(&LogProbs { vocab, top }, io);
    (chosen.values()[0], top_id.integers(), best.values())
}

#[test]
fn c073_and_c074_raw_log_probabilities() {
    let want = [-0.407606, -1.407606, -2.407606];
    let (chosen, ids, best) = log_probs(&[2.0, 1.0, 0.0], 0, 3);
    assert_eq!(ids, [0, 1, 2]);
    near(&best, &want, 5e-7);
    // The chosen token is what a greedy row takes, and its number is the same as in the list.
    assert_eq!(chosen, best[0]);
    for (token, want) in want.iter().enumerate() {
        near(&[log_probs(&[2.0, 1.0, 0.0], token as i32, 0).0], &[*want], 5e-7);
    }
}

#[test]
fn log_probabilities_of_what_is_masked_or_not_there() {
    let (chosen, ids, best) = log_probs(&[0.0, f32::NEG_INFINITY, 0.0], 1, 5);
    assert_eq!((chosen, ids), (f32::NEG_INFINITY, vec![0, 2, 1, -1, -1]));
    near(&best[..2], &[-std::f32::consts::LN_2; 2], 1e-7);
    assert_eq!(best[2..], [f32::NEG_INFINITY; 3]);
    assert!(log_probs(&[0.0, 1.0], -1, 0).0.is_nan() && log_probs(&[0.0, 1.0], 2, 0).0.is_nan());
    assert!(log_probs(&[0.0, f32::NAN], 0, 1).0.is_nan());
}

#[test]
fn masks_take_bits_from_the_low_end() {
    let mut words = Buffer::ints(&[1, 2], &[0b101, !1]);
    words.enc = Enc::U32;
    let mut logits = reals(&[1, 33], &[1.0; 33]);
    let io = MaskLogitsIo { allowed: words.tensor(), logits: logits.tensor_mut() };
    compute(&MaskLogits { vocab: 33 }, io);
    let left: Vec<usize> = (0..33).filter(|x| logits.values()[*x] == 1.0).collect();
    assert_eq!(left, [0, 2]);
    assert!(logits.values().iter().all(|l| *l == 1.0 || *l == f32::NEG_INFINITY));
}

/// Repetition, presence, frequency.
fn penalise(logits: &[f32], numbers: [f32; 3], biases: &[(i32, f32)]) -> Vec<f32> {
    let (vocab, count) = (logits.len() as u64, biases.len() as u64);
    let (prompt, output) = (Buffer::ints(&[1, 3], &[0, -1, 9]), Buffer::ints(&[1, 3], &[1, 2, 1]));
    let [repetition, presence, frequency] = numbers.map(|v| reals(&[1], &[v]));
    let ids: Vec<i32> = biases.iter().map(|b| b.0).collect();
    let values: Vec<f32> = biases.iter().map(|b| b.1).collect();
    let (bias_id, bias) = (Buffer::ints(&[1, count], &ids), reals(&[1, count], &values));
    let mut logits = reals(&[1, vocab], logits);
    let io = PenaliseIo {
        prompt: prompt.tensor(),
        output: output.tensor(),
        repetition: repetition.tensor(),
        presence: presence.tensor(),
        frequency: frequency.tensor(),
        bias_id: bias_id.tensor(),
        bias: bias.tensor(),
        logits: logits.tensor_mut(),
    };
    compute(&Penalise { vocab, biases: count }, io);
    logits.values()
}

#[test]
fn penalties_follow_their_order() {
    let logits = [2.0, 4.0, -1.0, 3.0, -2.0];
    // Id 0 is in the prompt, 1 twice and 2 once in the output, 3 and 4 nowhere.
    assert_eq!(penalise(&logits, [2.0, 0.0, 0.0], &[]), [1.0, 2.0, -2.0, 3.0, -2.0]);
    assert_eq!(penalise(&logits, [1.0, 0.5, 0.25], &[]), [2.0, 3.0, -1.75, 3.0, -2.0]);
    assert_eq!(penalise(&logits, [2.0, 0.5, 0.25], &[]), [1.0, 1.0, -2.75, 3.0, -2.0]);
    let biases = [(3, 1.5), (3, 1.0), (-1, 9.0), (5, 9.0)];
    assert_eq!(penalise(&logits, [1.0, 0.0, 0.0], &biases), [2.0, 4.0, -1.0, 5.5, -2.0]);
}

#[test]
fn rows_of_every_operator_agree() {
    fn agree<D: Card>() {
        edges_agree::<D>();
        draws_agree::<D>(20);
    }
    agree::<Penalise>();
    agree::<MaskLogits>();
    agree::<Filter>();
    agree::<Draw>();
    agree::<LogProbs>();
}
