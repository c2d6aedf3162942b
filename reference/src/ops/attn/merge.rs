//! Card of [`MergeAttention`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, MergeAttention, MergeAttentionIo, Result, Sym};

/// The parts of one head: log-sum-exps, weights relative to the larger part, and their sum with
/// the sink's.
struct Parts {
    log_sums: [f64; 2],
    weights: [f64; 2],
    largest: f64,
    denominator: f64,
}

impl Parts {
    /// `None` when neither part has an entry.
    fn of(log_sums: [f64; 2], sink: Option<f64>) -> Option<Parts> {
        if log_sums == [f64::NEG_INFINITY; 2] {
            return None;
        }
        let largest = log_sums[0].max(log_sums[1]);
        let weight = |log: f64| libm::exp(log - largest);
        let weights = log_sums.map(weight);
        let denominator = weights[0] + weights[1] + sink.map_or(0.0, weight);
        Some(Parts { log_sums, weights, largest, denominator })
    }
    /// The merged value; a part without entries is not touched.
    fn value(&self, parts: [f32; 2]) -> f64 {
        let term = |i: usize| self.weights[i] * f64::from(parts[i]);
        let sum: f64 = (0..2).filter(|i| self.log_sums[*i] > f64::NEG_INFINITY).map(term).sum();
        if self.log_sums.iter().any(|l| l.is_nan()) { f64::NAN } else { sum / self.denominator }
    }
    /// Magnitude of [`Parts::value`]: an exponential's error grows with its argument.
    fn magnitude(&self, parts: [f32; 2]) -> f64 {
        let term = |i: usize| {
            let away = self.largest - self.log_sums[i];
            self.weights[i] * (1.0 + away) * f64::from(parts[i]).abs()
        };
        let present = (0..2).filter(|i| self.log_sums[*i] > f64::NEG_INFINITY);
        present.map(term).sum::<f64>() / self.denominator
    }
    fn log_sum(&self) -> f64 {
        self.largest + libm::log(self.denominator)
    }
    fn log_magnitude(&self) -> f64 {
        self.largest.abs() + libm::log(self.denominator).abs() + 1.0
    }
}

fn case(heads: u64, head_dim: u64, sink: bool, tokens: u64) -> (MergeAttention, Extents) {
    (MergeAttention { heads, head_dim, sink }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MergeAttention {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MergeAttentionIo { a, lse_a, b, lse_b, sink, mut y, mut lse } = io;
        let heads = self.heads as usize;
        let tokens = if y.is_empty() { 0 } else { lse_a.rows() };
        for t in 0..tokens {
            let (mut logs, mut log_magnitudes) = (vec![], vec![]);
            for h in 0..heads {
                let r = t * heads + h;
                let sink = (!sink.is_empty()).then(|| f64::from(sink.at(0, h)));
                let (a, b) = (a.row(r), b.row(r));
                let Some(parts) = Parts::of([&lse_a, &lse_b].map(|l| l.at(t, h).into()), sink)
                else {
                    y.set_row(r, &vec![0.0; a.len()]);
                    y.set_magnitude(r, &vec![0.0; a.len()]);
                    let log = sink.unwrap_or(f64::NEG_INFINITY);
                    logs.push(log);
                    log_magnitudes.push(log.abs());
                    continue;
                };
                let pairs = || a.iter().zip(b.iter()).map(|(a, b)| [*a, *b]);
                y.set_row(r, &pairs().map(|p| parts.value(p)).collect::<Vec<_>>());
                y.set_magnitude(r, &pairs().map(|p| parts.magnitude(p)).collect::<Vec<_>>());
                logs.push(parts.log_sum());
                log_magnitudes.push(parts.log_magnitude());
            }
            lse.set_row(t, &logs);
            lse.set_magnitude(t, &log_magnitudes);
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        // Two or three exponentials of a few ulps, a sum and a division in fp32.
        Tolerance::Bound { gamma: 16.0 * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (heads, dim) = (choices.between(1, 9), choices.pick(&[1, 7, 64, 130]));
        case(heads, dim, choices.flag(), choices.between(0, 5))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(2, 8, true, 0), case(1, 1, false, 1), case(64, 512, true, 2)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32, 128].map(|tokens| case(64, 512, true, tokens)).to_vec()
    }
}
