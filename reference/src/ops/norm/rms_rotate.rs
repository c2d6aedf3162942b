//! Card of [`RmsNormRotate`].

use super::rms::normalise;
use super::rotate::{self, Rotation, Turn, magnitudes, queries, rotate};
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd,
    tensor_mut::encode_row, threads,
};
use tandem_hal::num::bf16;
use tandem_hal::{Extents, Real, Result, RmsNormRotate, RmsNormRotateIo, Rotate, Row, Sym};

/// One row: the norm, and its last dims rounded to bf16 and turned; before the last rounding.
#[inline(always)]
pub(crate) fn normalise_and_rotate(
    x: &[f32],
    weight: &[f32],
    eps: Real,
    turns: &[Turn],
    y: &mut [f64],
) {
    normalise(x, weight, eps, y);
    let start = y.len() - 2 * turns.len();
    for v in &mut y[start..] {
        *v = f64::from(bf16::round_f64(*v));
    }
    rotate(y, turns);
}

/// The normed value may round to either neighbour, an ulp of bf16, before it turns; the dims that do
/// not turn are far within that.
pub(crate) const GAMMA: f64 = 1.0 / 128.0 + rotate::GAMMA;

impl Card for RmsNormRotate {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RmsNormRotateIo { x, weight, position, mut y } = io;
        let (rotation, weight) = (Rotation::of(&self.rotate), weight.row(0));
        let mut values = vec![0.0; x.cols()];
        for r in 0..x.rows() {
            let turns = rotation.turns(position.int(0, r)).unwrap_or_default();
            normalise_and_rotate(&x.row(r), &weight, self.eps, &turns, &mut values);
            y.set_row(r, &values);
            if y.wants_magnitude() {
                normalise(&x.row(r), &weight, self.eps, &mut values);
                y.set_magnitude(r, &magnitudes(&values, &turns));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let RmsNormRotateIo { x, weight, position, mut y } = io;
                    let (enc, weight, width) = (y.enc, weight.row(0), x.cols());
                    let rotation = Rotation::of(&d.rotate);
                    let operations = 4 * width + 20 * d.rotate.rotary as usize;
                    threads::each(y.split_rows(), operations, |(r, bytes)| {
                        let turns = rotation.turns(position.int(0, r)).unwrap_or_default();
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            normalise_and_rotate(&x.row(r), &weight, d.eps, &turns, &mut values);
                            encode_row(enc, bytes, &values);
                        });
                    });
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
        let rotary = choices.pick(&[2, 8, 32, 64]);
        let head_dim = rotary + choices.pick(&[0, 2, 32, 64, 448]);
        let keys = Rotate { heads: 1, head_dim, rotary, ..queries(choices.flag()) };
        let rotate = Rotate { group: choices.pick(&[1, 2, 4]), ..keys };
        let d = RmsNormRotate { eps: Real::new(1e-20), rotate };
        (d, Extents::of(&[(Sym::Tokens, choices.between(0, 9))]))
    }

    fn edges() -> Vec<(Self, Extents)> {
        [(2, 2, 1), (128, 64, 65), (512, 64, 3), (128, 64, 0)]
            .map(|(head_dim, rotary, tokens)| {
                let rotate = Rotate { heads: 1, head_dim, rotary, group: 2, ..queries(true) };
                let d = RmsNormRotate { eps: Real::new(1e-20), rotate };
                (d, Extents::of(&[(Sym::Tokens, tokens)]))
            })
            .to_vec()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let rotate = Rotate { heads: 1, head_dim: 128, ..queries(true) };
        let d = RmsNormRotate { eps: Real::new(1e-20), rotate };
        [1, 6, 32, 128, 8192].map(|t| (d.clone(), Extents::of(&[(Sym::Tokens, t)]))).to_vec()
    }
}
