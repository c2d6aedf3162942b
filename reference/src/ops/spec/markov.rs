//! Card of [`Markov`].

use crate::ops::gemm::linear;
use crate::tensor_mut::encode_row;
use crate::{Card, Choices, Compute, Context, Host, Tensor, Tolerance, simd, sum, threads};
use crate::{blocked_row, scalar_row};
use tandem_hal::{Enc, Extents, Markov, MarkovIo, Result, Row, Sym};

/// The embedding of row `t`'s previous token, if it has one.
fn previous(vocab: u64, previous: &Tensor<'_>, t: usize) -> Option<usize> {
    usize::try_from(previous.int(0, t)).ok().filter(|x| (*x as u64) < vocab)
}

/// All rows by blocks of four ids over threads; the bits of the scalar loop.
fn blocked(d: &Markov, io: Host<'_, Markov>) {
    let MarkovIo { previous: ids, embed, head, mut logits } = io;
    if logits.is_empty() {
        return;
    }
    let known = |t: usize| Some((t, embed.row(previous(d.vocab, &ids, t)?)));
    let rows: Vec<_> = (0..logits.rows()).filter_map(known).collect();
    let (vocab, count) = (d.vocab as usize, rows.len());
    let mut sums = vec![[0.0f64; 4]; vocab.div_ceil(4) * count];
    let items: Vec<_> = sums.chunks_mut(count.max(1)).enumerate().collect();
    threads::each(items, 4 * d.rank as usize * count, |(block, sums)| {
        let w = [0, 1, 2, 3].map(|i| head.row((4 * block + i).min(vocab - 1)));
        let w = [&*w[0], &*w[1], &*w[2], &*w[3]];
        for (four, (_, x)) in sums.iter_mut().zip(&rows) {
            *four = simd::dot4(x, w);
        }
    });
    let mut split = logits.split_rows();
    for (i, (t, _)) in rows.iter().enumerate() {
        let bytes = &mut *split[*t].1;
        let old = bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b)));
        let sum = |(x, old): (usize, f64)| old + sums[x / 4 * count + i][x % 4];
        let values: Vec<f64> = old.enumerate().map(sum).collect();
        encode_row(Enc::F32, bytes, &values);
    }
}

fn case(vocab: u64, rank: u64, tokens: u64) -> (Markov, Extents) {
    (Markov { vocab, rank }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Markov {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MarkovIo { previous: ids, embed, head, mut logits } = io;
        for t in 0..logits.rows() {
            let old = logits.read().row(t).into_owned();
            let Some(token) = previous(self.vocab, &ids, t) else {
                logits
                    .set_magnitude(t, &old.iter().map(|l| f64::from(l.abs())).collect::<Vec<_>>());
                continue;
            };
            let row = embed.row(token);
            let each = |f: fn(&[f32], &[f32]) -> f64, l: fn(f64) -> f64| -> Vec<f64> {
                old.iter()
                    .enumerate()
                    .map(|(x, o)| l(f64::from(*o)) + f(&row, &head.row(x)))
                    .collect()
            };
            logits.set_row(t, &each(sum::dot, |l| l));
            if logits.wants_magnitude() {
                logits.set_magnitude(t, &each(sum::dot_magnitude, f64::abs));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    blocked(d, io);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.rank)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (vocab, rank) = (choices.pick(&[1, 4, 31, 33, 130]), choices.pick(&[1, 7, 8, 32, 64]));
        case(vocab, rank, choices.between(0, 6))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(4, 2, 2), case(1, 1, 1), case(640, 32, 0), case(2048, 64, 1), case(130, 256, 5)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32].iter().map(|t| case(129_280, 256, *t)).collect()
    }
}
