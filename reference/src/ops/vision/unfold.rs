//! Card of [`Unfold`].

use crate::{Card, Choices, Context, Host, Tensor, Tolerance};
use tandem_hal::{Extents, Result, Sym, Unfold, UnfoldIo};

/// The bytes of element `d` of patch `at`; zero for patches that are not there.
fn element(x: &Tensor<'_>, at: i32, d: usize) -> [u8; 2] {
    match usize::try_from(at).ok().filter(|at| *at < x.rows()) {
        Some(at) => {
            let i = 2 * (at * x.stride + d);
            [x.codes[i], x.codes[i + 1]]
        }
        None => [0, 0],
    }
}

fn case(width: u64, side: u64, tokens: u64, cells: u64) -> (Unfold, Extents) {
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::Cells, cells)]);
    (Unfold { width, side }, extents)
}

impl Card for Unfold {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let UnfoldIo { x, at, mut y } = io;
        let patches = (self.side * self.side) as usize;
        for (c, bytes) in y.split_rows() {
            let listed = at.ints(c);
            for (n, to) in bytes.chunks_exact_mut(2).enumerate() {
                to.copy_from_slice(&element(&x, listed[n % patches], n / patches));
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (width, side) = (choices.pick(&[1, 7, 16, 64]), choices.between(1, 3));
        case(width, side, choices.between(0, 20), choices.between(0, 6))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1, 1), case(16, 3, 20, 4), case(64, 3, 0, 2), case(64, 3, 9, 0)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [(1610, 192), (9198, 1022)].iter().map(|(t, c)| case(1024, 3, *t, *c)).collect()
    }
}
