//! Rows of [`ExpertDown`].

use super::{down, experts, tiles};
use crate::driver::{Shape, ViewArgument};
use crate::ops::prelude::*;
use tandem_hal::{ExpertDown, Needs};

impl Rows for ExpertDown {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<ExpertDown, Launch<ExpertDown>> = Row {
            needs: |d, at| Needs { workspace_bytes: each_bytes(d, at.at(Sym::Tokens)) },
            ..tiles::grouped("moe/expert_down_sm90", run_grouped, |d, _| {
                tiles::accepts(&d.experts, d.experts.inter)
            })
        };
        const { &[fused::<Self>("moe/expert_down", run, any), GROUPED] }
    }
}

fn run(d: &ExpertDown, io: &Arguments<ExpertDown>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.w2, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let blocks = tokens * down::tiles(&d.experts);
    on.rows("moe_expert_down__portable", blocks, down::THREADS, &arguments)
}

const KERNELS: [&str; 3] =
    ["moe_expert_down__grouped_8", "moe_expert_down__grouped_16", "moe_expert_down__grouped_32"];
/// Threads that add, and blocks of them a row at most.
const ADDERS: u64 = 256;
const MOST_BLOCKS: u64 = 8;

/// The projections of a launch before they are added up, bf16.
fn each_bytes(d: &ExpertDown, tokens: u64) -> u64 {
    let rows = tokens.min(tiles::MOST_TOKENS);
    rows.saturating_mul(d.experts.top_k).saturating_mul(2 * d.experts.hidden)
}

fn run_grouped(d: &ExpertDown, io: &Arguments<ExpertDown>, on: &Launcher<'_>) -> Result<()> {
    let e = &d.experts;
    let each = View(ViewArgument { stride: e.hidden, ..on.workspace });
    for rows in tiles::launches(on.at(Sym::Tokens)) {
        let (first, tokens) = (rows.start, rows.end - rows.start);
        let x = View(tiles::from(io.x, first, 1, e.top_k * e.inter / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let arguments = experts::arguments(&[x, expert, View(io.w2), each], e, &[U64(tokens)]);
        let (kernel, shape) = tiles::shape(e, e.inter, e.hidden, tokens, 0);
        on.launch(KERNELS[kernel], &shape, &arguments)?;
        let y = View(tiles::from(io.y, first, 4, 0));
        let arguments = experts::arguments(&[each, expert, y], e, &[U64(tokens)]);
        let blocks = e.hidden.div_ceil(ADDERS).min(MOST_BLOCKS);
        let shape = Shape {
            grid: [tokens as u32, blocks as u32, 1],
            programmatic: true,
            ..Shape::flat(0, ADDERS as u32)
        };
        on.launch("moe_expert_down__add", &shape, &arguments)?;
    }
    Ok(())
}
