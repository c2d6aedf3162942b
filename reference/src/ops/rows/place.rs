//! Card of [`PlaceRows`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, PlaceRows, PlaceRowsIo, Result, Sym};

fn case(width: u64, cells: u64, tokens: u64) -> (PlaceRows, Extents) {
    (PlaceRows { width }, Extents::of(&[(Sym::Cells, cells), (Sym::Tokens, tokens)]))
}

impl Card for PlaceRows {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let PlaceRowsIo { rows, at, mut x } = io;
        for t in 0..x.rows() {
            if let Some(row) = usize::try_from(at.int(0, t)).ok().filter(|r| *r < rows.rows()) {
                x.copy_row(t, &rows, row);
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 70), choices.between(0, 17), choices.between(0, 17))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(8, 3, 0), case(33, 0, 5), case(64, 7, 65)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        vec![case(5120, 1024, 8192)]
    }
}
