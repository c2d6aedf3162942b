//! Card of [`LogProbs`].

use crate::{Card, Choices, Context, Host, Tolerance, order};
use tandem_hal::{Extents, LogProbs, LogProbsIo, Result, Sym};

/// The largest logit, and the logarithm of the sum of exponentials above it.
fn normaliser(logits: &[f32]) -> (f64, f64) {
    if logits.iter().any(|l| l.is_nan()) {
        return (f64::NAN, f64::NAN);
    }
    let max = f64::from(logits[order::first(logits)]);
    let sum: f64 = logits.iter().map(|l| libm::exp(f64::from(*l) - max)).sum();
    (max, libm::log(sum))
}

fn case(vocab: u64, top: u64, tokens: u64) -> (LogProbs, Extents) {
    (LogProbs { vocab, top }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for LogProbs {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let LogProbsIo { logits, token, mut chosen, mut top_id, mut top } = io;
        let (mut values, mut magnitudes) = (vec![], vec![]);
        for t in 0..logits.rows() {
            let row = logits.row(t);
            let (max, log_sum) = normaliser(&row);
            let value = |x: usize| f64::from(row[x]) - max - log_sum;
            let magnitude = |x: usize| (f64::from(row[x]) - max).abs() + log_sum.abs() + 1.0;
            let known = usize::try_from(token.int(0, t)).ok().filter(|x| *x < row.len());
            values.push(known.map_or(f64::NAN, value));
            magnitudes.push(known.map_or(0.0, magnitude));
            if self.top == 0 {
                continue;
            }
            let best = order::best(&row, self.top as usize);
            let rest = self.top as usize - best.len();
            let pad = |n| std::iter::repeat_n(f64::NEG_INFINITY, n);
            let ids: Vec<i32> =
                best.iter().map(|x| *x as i32).chain(std::iter::repeat_n(-1, rest)).collect();
            top_id.set_ints(t, &ids);
            top.set_row(t, &best.iter().map(|x| value(*x)).chain(pad(rest)).collect::<Vec<_>>());
            let each = best.iter().map(|x| magnitude(*x)).chain(std::iter::repeat_n(0.0, rest));
            top.set_magnitude(t, &each.collect::<Vec<_>>());
        }
        chosen.set_row(0, &values);
        chosen.set_magnitude(0, &magnitudes);
        Ok(())
    }

    /// Fp32: half an ulp of each difference, a few of the logarithm, and what a sum over a tree of
    /// exponentials loses.
    fn tolerance(&self, operand: &str) -> Tolerance {
        match operand {
            "top_id" => Tolerance::Exact,
            _ => Tolerance::Bound { gamma: 24.0 * f64::from(f32::EPSILON) },
        }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let vocab = choices.pick(&[1, 2, 3, 31, 32, 33, 100, 640]);
        case(vocab, choices.pick(&[0, 1, 3, 20]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 0, 1), case(3, 3, 2), case(3, 5, 1), case(2048, 20, 7), case(10, 2, 0)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32].iter().flat_map(|t| [0, 20].map(|top| case(129_280, top, *t))).collect()
    }
}
