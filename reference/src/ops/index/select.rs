//! Card of [`Select`].

use super::queries::{Queries, visible};
use super::{candidates, scores, top_k};
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, TensorMut, Tolerance, blocked_row, scalar_row,
    threads,
};
use tandem_hal::{Blocks, Extents, Form, Result, Row, Select, SelectIo, TopK};

/// Scores held at a time.
const SCORES: usize = 1 << 22;

/// The operands besides the queries.
struct Rest<'a> {
    blocks: Tensor<'a>,
    published: TensorMut<'a>,
    y: TensorMut<'a>,
}

fn split<'a>(io: Host<'a, Select>) -> (Queries<'a>, Rest<'a>) {
    let SelectIo { q, weight, keys, sequence, table, visible, blocks, entries, published, y } = io;
    let entries = entries.cols();
    let queries = Queries { q, weight, keys, sequence, table, visible, entries };
    (queries, Rest { blocks, published, y })
}

/// One row's lists: published blocks, if any, and the pick.
fn choose(d: &Select, scores: &[f32], blocks: &[i32]) -> (Option<Vec<i32>>, Vec<i32>) {
    let published = d.publish.as_ref().map(|blocks| candidates::keep(blocks, scores));
    (published, top_k::pick(&d.top_k, scores, blocks))
}

impl Rest<'_> {
    fn listed(&self, t: usize) -> Vec<i32> {
        if self.blocks.is_empty() { vec![] } else { self.blocks.ints(t) }
    }
    fn write(&mut self, t: usize, lists: &(Option<Vec<i32>>, Vec<i32>)) {
        if let Some(published) = &lists.0 {
            self.published.set_ints(t, published);
        }
        self.y.set_ints(t, &lists.1);
    }
}

fn blocked(d: &Select, io: Host<'_, Select>) {
    let (queries, mut rest) = split(io);
    let at_once = (SCORES / queries.entries.max(1)).max(1);
    for start in (0..queries.rows()).step_by(at_once) {
        let rows = start..(start + at_once).min(queries.rows());
        let scores = queries.blocked(&d.scores, rows);
        let lists = threads::collect(scores.len(), 4 * queries.entries, |i| {
            let t = start + i;
            let seen = visible(&queries.visible, t, queries.entries);
            choose(d, &scores[i][..seen], &rest.listed(t))
        });
        for (i, lists) in lists.iter().enumerate() {
            rest.write(start + i, lists);
        }
    }
}

fn case(
    (heads, head_dim): (u64, u64),
    k: u64,
    blocks: [Option<(u64, u64)>; 2],
    tokens: u64,
    entries: u64,
) -> (Select, Extents) {
    let [restrict, publish] = blocks.map(|b| b.map(|(count, size)| Blocks { count, size }));
    let scores = scores::descriptor(heads, head_dim, Form::Mxfp4, 32);
    let d = Select { scores, top_k: TopK { k, blocks: restrict }, publish };
    (d, scores::extents(tokens, entries, 32))
}

impl Card for Select {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let (queries, mut rest) = split(io);
        for t in 0..queries.rows() {
            let scores = queries.scalar(&self.scores, t);
            let seen = visible(&queries.visible, t, queries.entries);
            let lists = choose(self, &scores[..seen], &rest.listed(t));
            rest.write(t, &lists);
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    blocked(d, io);
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
        let size = (choices.between(1, 5), 32 * choices.between(1, 4));
        let mut blocks = || choices.flag().then(|| (choices.between(1, 9), choices.between(1, 9)));
        let blocks = [blocks(), blocks()];
        let k = choices.pick(&[1, 7, 16, 64]);
        case(size, k, blocks, choices.between(0, 4), choices.below(80))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let (none, some) = (None, Some((16, 8)));
        vec![
            case((4, 128), 64, [none, none], 0, 64),
            case((4, 128), 64, [none, none], 2, 0),
            case((4, 128), 64, [none, some], 3, 200),
            case((4, 128), 64, [some, none], 3, 200),
            case((2, 32), 1, [some, some], 4, 33),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let some = Some((2048, 8));
        let shape = |extents| {
            [[None, None], [None, some], [some, None]]
                .map(|blocks| (case((32, 128), 512, blocks, 1, 32).0, extents))
        };
        scores::requests().into_iter().flat_map(shape).collect()
    }
}
