//! Card of [`Candidates`].

use super::best::{best, padded};
use super::queries::visible;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, threads};
use tandem_hal::{Blocks, Candidates, CandidatesIo, Extents, Result, Row, Sym};

/// The blocks kept for one row of visible scores.
pub(super) fn keep(blocks: &Blocks, scores: &[f32]) -> Vec<i32> {
    let (count, size) = (blocks.count as usize, blocks.size as usize);
    let Some(newest) = scores.len().checked_sub(1).map(|last| last / size) else {
        return padded(vec![], count);
    };
    // `max` passes over NaN.
    let largest = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let others = scores.chunks(size).map(largest).enumerate().take(newest);
    let scored = others.filter(|(_, score)| *score > f32::NEG_INFINITY);
    let mut kept = best(scored, count - 1);
    kept.push(newest as i32);
    padded(kept, count)
}

/// With the cost of a score in operations; 0 keeps to one thread.
fn run(d: &Candidates, io: Host<'_, Candidates>, operations: usize) {
    let CandidatesIo { scores, visible: counts, mut y } = io;
    let entries = scores.cols();
    let rows = threads::collect(counts.cols(), operations * entries, |t| {
        let row = scores.row(t);
        keep(&d.blocks, &row[..visible(&counts, t, entries)])
    });
    for (t, row) in rows.iter().enumerate() {
        y.set_ints(t, row);
    }
}

fn case(count: u64, size: u64, tokens: u64, entries: u64) -> (Candidates, Extents) {
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::Entries, entries)]);
    (Candidates { blocks: Blocks { count, size } }, extents)
}

impl Card for Candidates {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(d, io, 1);
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
        let (count, size) = (choices.between(1, 20), choices.between(1, 9));
        case(count, size, choices.between(0, 5), choices.below(200))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![
            case(16, 8, 0, 64),
            case(16, 8, 2, 0),
            case(1, 8, 2, 65),
            case(16, 8, 3, 129),
            case(2048, 8, 1, 16448),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 48, 128].map(|tokens| case(2048, 8, tokens, 1 << 17)).to_vec()
    }
}
