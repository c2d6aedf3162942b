//! Card of [`Mxfp8Linear`].

use super::linear;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Extents, Mxfp8Linear, Mxfp8LinearIo, Result, Row, Sym};

fn case(n: u64, k: u64, tokens: u64) -> (Mxfp8Linear, Extents) {
    (Mxfp8Linear { n, k }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Mxfp8Linear {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let Mxfp8LinearIo { x, weight, mut y } = io;
        linear::scalar(&x, &weight, None, 1, &mut y);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|_, io, _| {
                    let Mxfp8LinearIo { x, weight, mut y } = io;
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
        // Query and key projections apart and together, and what of them, of the output projection
        // and of the shared expert is left to one of 4 and of 8 ranks; n-gram memory; draft.
        let shapes = [
            (1280, 5120),
            (512, 5120),
            (1792, 5120),
            (32768, 1280),
            (8192, 1280),
            (4096, 1280),
            (5120, 8192),
            (5120, 2048),
            (5120, 1024),
            (2304, 5120),
            (4608, 5120),
            (1152, 5120),
            (576, 5120),
            (5120, 2304),
            (5120, 576),
            (5120, 288),
            (25600, 6144),
            (5120, 15360),
        ];
        let tokens = [1, 8, 16, 64, 512, 4096, 8192];
        shapes.iter().flat_map(|&(n, k)| tokens.map(|t| case(n, k, t))).collect()
    }
}
