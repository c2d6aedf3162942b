//! Card of [`Penalise`].

use crate::{Card, Choices, Context, Host, Tensor, Tolerance};
use std::collections::BTreeMap;
use tandem_hal::{Extents, Penalise, PenaliseIo, Result, Sym};

/// How often each id that occurs in a row was generated.
fn counts(vocab: u64, prompt: &[i32], output: &[i32]) -> BTreeMap<usize, u32> {
    let known = |x: &i32| usize::try_from(*x).ok().filter(|x| (*x as u64) < vocab);
    let mut counts = BTreeMap::new();
    for x in prompt.iter().filter_map(known) {
        counts.entry(x).or_insert(0);
    }
    for x in output.iter().filter_map(known) {
        *counts.entry(x).or_insert(0) += 1;
    }
    counts
}

/// Replaces logit `x` of a row of f32 by `f` of it.
fn change(row: &mut [u8], x: usize, f: impl FnOnce(f32) -> f32) {
    let bytes = &mut row[4 * x..4 * x + 4];
    let logit = f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.copy_from_slice(&f(logit).to_le_bytes());
}

/// The rows of `ids`, none where there is no history.
fn row(ids: &Tensor<'_>, t: usize) -> Vec<i32> {
    if ids.is_empty() { vec![] } else { ids.ints(t) }
}

fn case(vocab: u64, biases: u64, history: u64, tokens: u64) -> (Penalise, Extents) {
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::History, history)]);
    (Penalise { vocab, biases }, extents)
}

impl Card for Penalise {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let PenaliseIo {
            prompt,
            output,
            repetition,
            presence,
            frequency,
            bias_id,
            bias,
            mut logits,
        } = io;
        for (t, bytes) in logits.split_rows() {
            let (r, p, f) = (repetition.at(0, t), presence.at(0, t), frequency.at(0, t));
            if (r, p, f) != (1.0, 0.0, 0.0) {
                for (x, count) in counts(self.vocab, &row(&prompt, t), &row(&output, t)) {
                    let subtract = |l: f32| l - f * count as f32 - if count > 0 { p } else { 0.0 };
                    change(bytes, x, |l| subtract(if l > 0.0 { l / r } else { l * r }));
                }
            }
            for (i, x) in row(&bias_id, t).iter().enumerate() {
                if u64::try_from(*x).is_ok_and(|x| x < self.vocab) {
                    change(bytes, *x as usize, |l| l + bias.at(t, i));
                }
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let vocab = choices.pick(&[1, 5, 32, 33, 100]);
        let (biases, history) = (choices.between(0, 4), choices.pick(&[0, 1, 7, 40]));
        case(vocab, biases, history, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 0, 0, 1), case(10, 3, 0, 2), case(33, 0, 9, 3), case(2048, 16, 257, 6)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32].iter().map(|t| case(129_280, 16, 8192, *t)).collect()
    }
}
