//! Card of [`GroupedLinear`].

use super::linear;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Extents, GroupedLinear, GroupedLinearIo, Result, Row, Sym};

fn case(groups: u64, n: u64, k: u64, tokens: u64) -> (GroupedLinear, Extents) {
    (GroupedLinear { groups, n, k }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for GroupedLinear {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let GroupedLinearIo { x, weight, mut y } = io;
        linear::scalar(&x, &weight, None, self.groups as usize, &mut y);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let GroupedLinearIo { x, weight, mut y } = io;
                    linear::blocked(&x, &weight, None, d.groups as usize, &mut y);
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
        let groups = choices.between(1, 5);
        let (n, k) = (32 * choices.between(1, 3), 32 * choices.between(1, 5));
        case(groups, n, k, choices.between(0, 7))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 32, 32, 1), case(8, 32, 32, 0), case(3, 96, 64, 7), case(2, 32, 1024, 65)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        // The groups of one, of four and of eight ranks.
        let tokens = [1, 8, 16, 64, 512, 4096, 8192];
        [8, 2, 1].iter().flat_map(|g| tokens.map(|t| case(*g, 1024, 4096, t))).collect()
    }
}
