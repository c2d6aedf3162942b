//! Card of [`MhcStart`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, MhcStart, MhcStartIo, Result, Sym};

fn case(streams: u64, width: u64, tokens: u64) -> (MhcStart, Extents) {
    (MhcStart { streams, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcStart {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcStartIo { x, mut streams, mut pre } = io;
        let count = self.streams as usize;
        let mut first = vec![0.0; count];
        first[0] = 1.0;
        for t in 0..x.rows() {
            for s in 0..count {
                streams.copy_row(t * count + s, &x, t);
            }
            pre.set_row(t, &first);
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 6), choices.between(1, 70), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(4, 32, 0), case(4, 100, 3)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
