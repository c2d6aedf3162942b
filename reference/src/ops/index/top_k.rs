//! Card of [`TopK`].

use super::best::{best, padded};
use super::queries::visible;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, threads};
use tandem_hal::{Blocks, Extents, Result, Row, Sym, TopK, TopKIo};

/// Which of `count` blocks are listed.
fn listed(blocks: &[i32], count: usize) -> Vec<bool> {
    let mut there = vec![false; count];
    for block in blocks {
        if let Some(b) = usize::try_from(*block).ok().and_then(|b| there.get_mut(b)) {
            *b = true;
        }
    }
    there
}

/// The pick of one row of visible scores; `blocks` as listed, when there is a restriction.
pub(super) fn pick(d: &TopK, scores: &[f32], blocks: &[i32]) -> Vec<i32> {
    let scored = scores.iter().copied().enumerate();
    let k = d.k as usize;
    let list = match &d.blocks {
        None => best(scored, k),
        Some(of) => {
            let size = of.size as usize;
            let there = listed(blocks, scores.len().div_ceil(size));
            best(scored.filter(|(j, _)| there[j / size]), k)
        }
    };
    padded(list, k)
}

/// With the cost of a score in operations; 0 keeps to one thread.
fn run(d: &TopK, io: Host<'_, TopK>, operations: usize) {
    let TopKIo { scores, visible: counts, blocks, mut y } = io;
    let entries = scores.cols();
    let rows = threads::collect(counts.cols(), operations * entries, |t| {
        let list = if d.blocks.is_some() { blocks.ints(t) } else { vec![] };
        let row = scores.row(t);
        pick(d, &row[..visible(&counts, t, entries)], &list)
    });
    for (t, row) in rows.iter().enumerate() {
        y.set_ints(t, row);
    }
}

fn case(k: u64, blocks: Option<(u64, u64)>, tokens: u64, entries: u64) -> (TopK, Extents) {
    let blocks = blocks.map(|(count, size)| Blocks { count, size });
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::Entries, entries)]);
    (TopK { k, blocks }, extents)
}

impl Card for TopK {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(d, io, 4);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let size = choices.between(1, 9);
        let blocks = choices.flag().then(|| (choices.between(1, 20), size));
        let k = choices.pick(&[1, 2, 7, 8, 31, 64, 65]);
        case(k, blocks, choices.between(0, 5), choices.below(200))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let mut cases: Vec<_> = [0, 1, 511, 512, 513].map(|n| case(512, None, 2, n)).to_vec();
        cases.extend([
            case(64, None, 0, 100),
            // Low contrast over long rows (case C038).
            case(512, None, 1, 16448),
            case(64, Some((16, 8)), 3, 257),
            case(512, Some((2048, 8)), 1, 16448),
        ]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let lengths = [1 << 14, 1 << 17, 1 << 18];
        let shape = |tokens| lengths.map(|n| case(512, None, tokens, n));
        let mut cases: Vec<_> = [1, 6, 48, 256].into_iter().flat_map(shape).collect();
        cases.push(case(512, None, 1, 1 << 20));
        cases.extend([1, 6, 48].map(|t| case(512, Some((2048, 8)), t, 1 << 17)));
        cases
    }
}
