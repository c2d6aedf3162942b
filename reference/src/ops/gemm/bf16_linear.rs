//! Card of [`Bf16Linear`].

use super::linear;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Bf16Linear, Bf16LinearIo, Extents, Result, Row, Sym};

fn case(n: u64, k: u64, bias: bool, tokens: u64) -> (Bf16Linear, Extents) {
    (Bf16Linear { n, k, bias }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Bf16Linear {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let Bf16LinearIo { x, weight, bias, mut y } = io;
        linear::scalar(&x, &weight, self.bias.then_some(&bias), 1, &mut y);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let Bf16LinearIo { x, weight, bias, mut y } = io;
                    linear::blocked(&x, &weight, d.bias.then_some(&bias), 1, &mut y);
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
        let k = choices.pick(&[1, 8, 31, 32, 48, 64, 100, 256]);
        case(n, k, choices.flag(), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let awkward = [16, 32, 48, 288, 512, 768];
        let mut cases: Vec<_> = awkward
            .iter()
            .flat_map(|n| [1, 7, 65].map(|tokens| case(*n, 64, false, tokens)))
            .collect();
        cases.extend([case(1, 1, true, 1), case(33, 32, true, 0), case(40, 588, true, 3)]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        // The ratio-1 compressor, index keys, index weights.
        let shapes = [(512, 5120), (128, 512), (32, 5120)];
        let tokens = [1, 8, 64, 512, 4096, 8192];
        shapes.iter().flat_map(|&(n, k)| tokens.map(|t| case(n, k, false, t))).collect()
    }
}
