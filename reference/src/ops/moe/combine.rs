//! Card of [`Combine`].

use super::experts::{self, Slots};
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, threads};
use tandem_hal::{Combine, CombineIo, Extents, Result, Row};

/// The sum over `slots` of their `width` values, in the order of the slots.
pub(super) fn sum(slots: &[usize], width: usize, value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for slot in slots {
        for (n, sum) in sums.iter_mut().enumerate() {
            *sum += value(*slot, n);
        }
    }
    sums
}

/// `top_k` additions in fp32, half an ulp of the running sum each.
pub(super) fn gamma(top_k: u64) -> f64 {
    top_k as f64 * f64::from(f32::EPSILON) / 2.0
}

impl Card for Combine {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let CombineIo { x, expert, mut y } = io;
        let slots = Slots::of(&self.experts, &expert);
        let (top_k, hidden) = (self.experts.top_k as usize, self.experts.hidden as usize);
        for t in 0..if y.is_empty() { 0 } else { y.rows() } {
            let (row, taken) = (x.row(t), slots.ascending(t, top_k));
            let value = |slot: usize, n| f64::from(row[slot % top_k * hidden + n]);
            y.set_row(t, &sum(&taken, hidden, value));
            if y.wants_magnitude() {
                y.set_magnitude(t, &sum(&taken, hidden, |slot, n| value(slot, n).abs()));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let CombineIo { x, expert, mut y } = io;
                    let slots = Slots::of(&d.experts, &expert);
                    let (top_k, hidden) = (d.experts.top_k as usize, d.experts.hidden as usize);
                    let enc = y.enc;
                    threads::each(y.split_rows(), top_k * hidden, |(t, bytes)| {
                        let (row, taken) = (x.row(t), slots.ascending(t, top_k));
                        let mut sums = vec![0.0f64; hidden];
                        for slot in taken {
                            let from = &row[slot % top_k * hidden..][..hidden];
                            sums.iter_mut().zip(from).for_each(|(s, v)| *s += f64::from(*v));
                        }
                        crate::tensor_mut::encode_row(enc, bytes, &sums);
                    });
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: gamma(self.experts.top_k) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (experts, extents) = experts::draw(choices);
        (Combine { experts }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        experts::edges().into_iter().map(|(experts, at)| (Combine { experts }, at)).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        experts::bench_shapes().into_iter().map(|(experts, at)| (Combine { experts }, at)).collect()
    }
}
