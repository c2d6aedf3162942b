//! Card of [`MhcExpand`].

use super::streams::side_by_side;
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd,
    tensor_mut::encode_row, threads,
};
use tandem_hal::{Extents, MhcExpand, MhcExpandIo, Result, Row, Sym};

/// One stream of one token: `post x + Σ_j comb[j] h[j]` in fp32 steps, the sources summed in order
/// first, before its rounding.
/// `comb` yields the column of the destination stream.
#[inline(always)]
fn expand(x: &[f32], residual: &[f32], post: f32, comb: impl Iterator<Item = f32>, y: &mut [f64]) {
    y.fill(0.0);
    for (h, c) in residual.chunks_exact(y.len()).zip(comb) {
        for (y, h) in y.iter_mut().zip(h) {
            *y = f64::from(*y as f32 + c * h);
        }
    }
    for (y, x) in y.iter_mut().zip(x) {
        *y = f64::from(post * x + *y as f32);
    }
}

fn case(streams: u64, width: u64, tokens: u64) -> (MhcExpand, Extents) {
    (MhcExpand { streams, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcExpand {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcExpandIo { x, residual, post, comb, mut y } = io;
        let count = self.streams as usize;
        let mut values = vec![0.0; y.cols()];
        let positive = |v: &[f32]| v.iter().map(|v| v.abs()).collect::<Vec<f32>>();
        for t in 0..x.rows() {
            let (x, h) = (x.row(t), side_by_side(&residual, count, t));
            for k in 0..count {
                let (post, column) = (post.at(t, k), (0..count).map(|j| comb.at(t * count + j, k)));
                expand(&x, &h, post, column.clone(), &mut values);
                y.set_row(t * count + k, &values);
                if y.wants_magnitude() {
                    let column = column.map(f32::abs);
                    expand(&positive(&x), &positive(&h), post.abs(), column, &mut values);
                    y.set_magnitude(t * count + k, &values);
                }
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let MhcExpandIo { x, residual, post, comb, mut y } = io;
                    let (enc, count, width) = (y.enc, d.streams as usize, y.cols());
                    let mut rows = y.split_rows();
                    let tokens: Vec<_> = rows.chunks_mut(count).enumerate().collect();
                    let operations = count * (count + 2) * width;
                    threads::each(tokens, operations, |(t, rows)| {
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            let (x, h) = (x.row(t), side_by_side(&residual, count, t));
                            for (k, (_, bytes)) in rows.iter_mut().enumerate() {
                                let column = (0..count).map(|j| comb.at(t * count + j, k));
                                expand(&x, &h, post.at(t, k), column, &mut values);
                                encode_row(enc, bytes, &values);
                            }
                        });
                    });
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        // A product and an addition for the sub-layer's output and for each source.
        Tolerance::Bound { gamma: (self.streams + 1) as f64 * f64::from(f32::EPSILON) }
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
