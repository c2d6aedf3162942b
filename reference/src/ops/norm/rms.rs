//! Card of [`RmsNorm`].

use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, ops::gemm::linear, scalar_row,
    simd, sum, tensor_mut::encode_row, threads,
};
use tandem_hal::{Extents, Real, Result, RmsNorm, RmsNormIo, Row, Sym, num::bf16};

/// `1 / sqrt(mean(x²) + eps)` of one row: the sum in the fixed order, then fp32 steps.
#[inline(always)]
pub(crate) fn rstd(x: &[f32], eps: Real) -> f32 {
    let mean = (sum::in_f32_range(sum::squares(x)) / x.len() as f64) as f32;
    (1.0 / f64::from(mean + eps.value()).sqrt()) as f32
}

/// `w (x rstd)` of one row in fp32, before its rounding.
#[inline(always)]
pub(crate) fn normalise(x: &[f32], weight: &[f32], eps: Real, y: &mut [f64]) {
    let rstd = rstd(x, eps);
    for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
        *y = f64::from(w * (x * rstd));
    }
}

/// A row rounded to bf16, for what reads it next within a fused operator.
#[inline(always)]
pub(crate) fn rounded(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| bf16::round_f64(*v)).collect()
}

/// Factor of `|y|`: the sum of squares as a linear's, half of it after the root, and four roundings
/// of mean, root, quotient and product.
pub(crate) fn gamma(width: u64) -> f64 {
    linear::gamma(width)
}

fn case(width: u64, eps: f32, tokens: u64) -> (RmsNorm, Extents) {
    (RmsNorm { width, eps: Real::new(eps) }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for RmsNorm {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RmsNormIo { x, weight, mut y } = io;
        let (weight, mut values) = (weight.row(0), vec![0.0; x.cols()]);
        for r in 0..x.rows() {
            normalise(&x.row(r), &weight, self.eps, &mut values);
            y.set_row(r, &values);
            if y.wants_magnitude() {
                y.set_magnitude(r, &values.iter().map(|v| v.abs()).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let RmsNormIo { x, weight, mut y } = io;
                    let (enc, weight, width) = (y.enc, weight.row(0), x.cols());
                    threads::each(y.split_rows(), 4 * width, |(r, bytes)| {
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            normalise(&x.row(r), &weight, d.eps, &mut values);
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
        Tolerance::Bound { gamma: gamma(self.width) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let width = choices.pick(&[1, 8, 32, 64, 96, 100, 128, 512, 1000]);
        case(width, choices.pick(&[1e-20, 1e-6]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let sizes = [(1, 1), (64, 0), (7, 3), (512, 1), (1280, 65), (5120, 2)];
        sizes.map(|(width, tokens)| case(width, 1e-20, tokens)).to_vec()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let tokens = [1, 6, 32, 128, 8192];
        [5120, 512].iter().flat_map(|w| tokens.map(|t| case(*w, 1e-20, t))).collect()
    }
}
