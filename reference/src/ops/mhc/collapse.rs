//! Card of [`MhcCollapse`].

use super::streams::side_by_side;
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd,
    tensor_mut::encode_row, threads,
};
use tandem_hal::{Extents, MhcCollapse, MhcCollapseIo, Result, Row, Sym};

/// `Σ_s pre[s] h[s]` of one token in stream order, in fp32 steps, before its rounding.
#[inline(always)]
pub(super) fn collapse(streams: &[f32], pre: &[f32], y: &mut [f64]) {
    y.fill(0.0);
    for (h, p) in streams.chunks_exact(y.len()).zip(pre) {
        for (y, h) in y.iter_mut().zip(h) {
            *y = f64::from(*y as f32 + p * h);
        }
    }
}

/// `Σ_s |pre[s] h[s]|` of one token.
pub(super) fn magnitudes(streams: &[f32], pre: &[f32], width: usize) -> Vec<f64> {
    let magnitude = |values: &[f32]| values.iter().map(|v| v.abs()).collect::<Vec<f32>>();
    let mut terms = vec![0.0; width];
    collapse(&magnitude(streams), &magnitude(pre), &mut terms);
    terms
}

/// A product and an addition a stream, each half an ulp of what there is so far.
pub(super) fn gamma(streams: u64) -> f64 {
    streams as f64 * f64::from(f32::EPSILON)
}

fn case(streams: u64, width: u64, tokens: u64) -> (MhcCollapse, Extents) {
    (MhcCollapse { streams, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcCollapse {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcCollapseIo { streams, pre, mut y } = io;
        let mut values = vec![0.0; y.cols()];
        for t in 0..y.rows() {
            let (h, pre) = (side_by_side(&streams, self.streams as usize, t), pre.row(t));
            collapse(&h, &pre, &mut values);
            y.set_row(t, &values);
            if y.wants_magnitude() {
                y.set_magnitude(t, &magnitudes(&h, &pre, values.len()));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let MhcCollapseIo { streams, pre, mut y } = io;
                    let (enc, count, width) = (y.enc, d.streams as usize, y.cols());
                    threads::each(y.split_rows(), (count + 2) * width, |(t, bytes)| {
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            let h = side_by_side(&streams, count, t);
                            collapse(&h, &pre.row(t), &mut values);
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
        Tolerance::Bound { gamma: gamma(self.streams) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 6), choices.between(1, 300), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(4, 32, 0), case(4, 100, 3), case(4, 5120, 2)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
