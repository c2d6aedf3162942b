//! Card of [`MhcCollapseNorm`].

use super::collapse::{self, collapse};
use super::streams::side_by_side;
use crate::ops::norm::rms::{normalise, rounded, rstd};
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd,
    tensor_mut::encode_row, threads,
};
use tandem_hal::{Extents, MhcCollapseNorm, MhcCollapseNormIo, Real, Result, Row, Sym};

/// One token: the collapse rounded to bf16, which is given back, and its norm before the rounding.
#[inline(always)]
fn collapse_and_norm(
    streams: &[f32],
    pre: &[f32],
    weight: &[f32],
    eps: Real,
    y: &mut [f64],
) -> Vec<f32> {
    collapse(streams, pre, y);
    let x = rounded(y);
    normalise(&x, weight, eps, y);
    x
}

/// The collapse may round to either neighbour, an ulp of bf16, before the norm.
const GAMMA: f64 = 1.0 / 128.0;

/// What the bound of `y` is stated in: `|y|` once for its own `x` and once for the root, and what
/// the roundings within the collapse may move it by where its terms cancel.
fn magnitudes(d: &MhcCollapseNorm, x: &[f32], weight: &[f32], terms: &[f64]) -> Vec<f64> {
    let (rstd, share) = (f64::from(rstd(x, d.eps)), collapse::gamma(d.streams) / GAMMA);
    let of = |((x, w), term): ((&f32, &f32), &f64)| {
        f64::from(w.abs()) * rstd * (2.0 * f64::from(x.abs()) + share * term)
    };
    x.iter().zip(weight).zip(terms).map(of).collect()
}

fn case(streams: u64, width: u64, tokens: u64) -> (MhcCollapseNorm, Extents) {
    let d = MhcCollapseNorm { streams, width, eps: Real::new(1e-20) };
    (d, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcCollapseNorm {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcCollapseNormIo { streams, pre, weight, mut y, mut y8 } = io;
        let (weight, mut values) = (weight.row(0), vec![0.0; y.cols()]);
        for t in 0..y.rows() {
            let (h, pre) = (side_by_side(&streams, self.streams as usize, t), pre.row(t));
            let x = collapse_and_norm(&h, &pre, &weight, self.eps, &mut values);
            y.set_row(t, &values);
            y8.set_scaled_row(t, &rounded(&values));
            if y.wants_magnitude() {
                let terms = collapse::magnitudes(&h, &pre, x.len());
                y.set_magnitude(t, &magnitudes(self, &x, &weight, &terms));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let MhcCollapseNormIo { streams, pre, weight, mut y, mut y8 } = io;
                    let (enc, count, width) = (y.enc, d.streams as usize, y.cols());
                    let weight = weight.row(0);
                    let rows = y.split_rows().into_iter().zip(y8.split_scaled_rows()).collect();
                    threads::each(rows, (count + 10) * width, |((t, bytes), mut y8)| {
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            let h = side_by_side(&streams, count, t);
                            collapse_and_norm(&h, &pre.row(t), &weight, d.eps, &mut values);
                            encode_row(enc, bytes, &values);
                            y8.set(&rounded(&values));
                        });
                    });
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, operand: &str) -> Tolerance {
        match operand {
            "y" => Tolerance::Bound { gamma: GAMMA },
            // The normed value may round to either neighbour, which moves a code by one at most.
            _ => Tolerance::Ulp { ulps: 1, share: 0.0 },
        }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 6), 32 * choices.between(1, 9), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 32, 1), case(4, 32, 0), case(4, 96, 3), case(4, 5120, 2)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
