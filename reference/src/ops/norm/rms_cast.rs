//! Card of [`RmsNormCast`].

use super::rms::{normalise, rounded};
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd, threads,
};
use tandem_hal::{Extents, Real, Result, RmsNormCast, RmsNormCastIo, Row, Sym};

fn case(width: u64, tokens: u64) -> (RmsNormCast, Extents) {
    (RmsNormCast { width, eps: Real::new(1e-20) }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for RmsNormCast {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RmsNormCastIo { x, weight, mut y } = io;
        let (weight, mut values) = (weight.row(0), vec![0.0; x.cols()]);
        for r in 0..x.rows() {
            normalise(&x.row(r), &weight, self.eps, &mut values);
            y.set_scaled_row(r, &rounded(&values));
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let RmsNormCastIo { x, weight, mut y } = io;
                    let (weight, width) = (weight.row(0), x.cols());
                    let rows = y.split_scaled_rows().into_iter().enumerate().collect();
                    threads::each(rows, 8 * width, |(r, mut to)| {
                        let mut values = vec![0.0; width];
                        simd::vectorised(|| {
                            normalise(&x.row(r), &weight, d.eps, &mut values);
                            to.set(&rounded(&values));
                        });
                    });
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        // The normed value may round to either neighbour, which moves a code by one at most.
        Tolerance::Ulp { ulps: 1, share: 0.0 }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(32 * choices.between(1, 20), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        [(32, 1), (64, 0), (1280, 3), (32 * 33, 65)].map(|(w, t)| case(w, t)).to_vec()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(1280, tokens)).to_vec()
    }
}
