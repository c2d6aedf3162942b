//! Card of [`Mxfp4Linear`].

use super::linear;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Extents, Mxfp4Linear, Mxfp4LinearIo, Result, Row, Sym};

fn case(n: u64, k: u64, tokens: u64) -> (Mxfp4Linear, Extents) {
    (Mxfp4Linear { n, k }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Mxfp4Linear {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let Mxfp4LinearIo { x, weight, mut y } = io;
        linear::scalar(&x, &weight, None, 1, &mut y);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|_, io, _| {
                    let Mxfp4LinearIo { x, weight, mut y } = io;
                    linear::blocked(&x, &weight, None, 1, &mut y);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.k)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let n = choices.pick(&[1, 16, 31, 32, 33, 48, 64, 96, 130]);
        let k = 32 * choices.between(1, 8);
        case(n, k, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let awkward = [16, 32, 48, 288, 512, 768];
        let mut cases: Vec<_> =
            awkward.iter().flat_map(|n| [1, 7, 65].map(|tokens| case(*n, 64, tokens))).collect();
        cases.extend([case(1, 32, 1), case(33, 32, 0), case(40, 1280, 3)]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shapes = [(2304, 5120), (5120, 2304)];
        let tokens = [1, 6, 32, 128, 8192];
        shapes.iter().flat_map(|&(n, k)| tokens.map(|t| case(n, k, t))).collect()
    }
}
