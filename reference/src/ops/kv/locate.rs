//! Card of [`Locate`].

use crate::{Card, Choices, Context, Host, Tensor, Tolerance};
use tandem_hal::{Extents, Locate, LocateIo, Result, Sym};

/// Address of entry `entry` of sequence `sequence`, or -1.
pub(in crate::ops) fn address(
    table: &Tensor<'_>,
    sequence: i32,
    entry: i64,
    page_entries: u64,
) -> i32 {
    let inside = |n: i64, end: usize| usize::try_from(n).ok().filter(|n| *n < end);
    let page_entries = page_entries as i64;
    let page = || -> Option<i64> {
        let sequence = inside(sequence.into(), table.shape()[0] as usize)?;
        let place = inside(entry.div_euclid(page_entries), table.cols())?;
        Some(table.int(sequence, place).into())
    };
    match page() {
        Some(page) if page >= 0 => {
            // No pool reaches 2^31 entries; an address that would is none.
            i32::try_from(page * page_entries + entry % page_entries).unwrap_or(-1)
        }
        _ => -1,
    }
}

fn case(count: u64, page_entries: u64, tokens: u64) -> (Locate, Extents) {
    let pairs = [(Sym::Tokens, tokens), (Sym::Sequences, 3), (Sym::TablePages, 4), (Sym::Pages, 9)];
    (Locate { count, page_entries, pages: Sym::Pages }, Extents::of(&pairs))
}

impl Card for Locate {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let LocateIo { entry, sequence, table, mut y } = io;
        for t in 0..sequence.cols() {
            let of = |e: i32| address(&table, sequence.int(0, t), e.into(), self.page_entries);
            let row: Vec<i32> = entry.ints(t).into_iter().map(of).collect();
            y.set_ints(t, &row);
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 40), choices.between(1, 33), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(4, 32, 0), case(1, 1, 1), case(512, 32, 3), case(64, 64, 7)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shape = |tokens| {
            let (d, extents) = case(512, 32, tokens);
            let table = extents.with(Sym::TablePages, 1 << 14).with(Sym::Pages, 1 << 16);
            (d, table.with(Sym::Sequences, tokens))
        };
        [1, 32, 128].map(shape).to_vec()
    }
}
