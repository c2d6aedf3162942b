//! Card of [`Embed`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Embed, EmbedIo, Extents, Result, Sym};

fn case(vocab: u64, width: u64, tokens: u64) -> (Embed, Extents) {
    (Embed { vocab, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Embed {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let EmbedIo { id, table, mut y } = io;
        for t in 0..y.rows() {
            match usize::try_from(id.int(0, t)) {
                Ok(row) if row < table.rows() => y.copy_row(t, &table, row),
                _ => y.clear_row(t),
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let vocab = choices.pick(&[1, 2, 7, 64, 1000]);
        case(vocab, choices.between(1, 70), choices.between(0, 33))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(10, 8, 0), case(3, 33, 65)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(129_280, 5120, tokens)).to_vec()
    }
}
