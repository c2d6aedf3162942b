//! Card of [`AllGather`].

use super::exchange::exchange;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{AllGather, AllGatherIo, Extents, Operator, Result, Sym};

fn case(ranks: u64, width: u64, tokens: u64) -> (AllGather, Extents) {
    (AllGather { width, ranks }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for AllGather {
    fn compute(&self, io: Host<'_, Self>, context: &Context<'_>) -> Result<()> {
        let AllGatherIo { x, mut y } = io;
        let all = exchange(Self::ID, self.ranks, &x, context)?;
        let width = self.width as usize;
        for (t, bytes) in y.split_rows() {
            let values = all.iter().flat_map(|x| &x[t * width..(t + 1) * width]);
            for (to, value) in bytes.chunks_exact_mut(4).zip(values) {
                to.copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let ranks = choices.between(1, 4);
        case(ranks, choices.pick(&[1, 7, 32, 100]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(1, 257, 5), case(2, 64, 0), case(2, 64, 3), case(4, 33, 5)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shapes = [2u64, 4, 8].iter().flat_map(|ranks| [1, 32].map(|t| (*ranks, t)));
        let one = |(ranks, t): (u64, u64)| {
            (AllGather { width: 129_280 / ranks, ranks }, Extents::of(&[(Sym::Tokens, t)]))
        };
        shapes.map(one).collect()
    }
}
