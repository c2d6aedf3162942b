//! Rows of [`Down`].

use super::{experts, tiles};
use crate::ops::prelude::*;
use tandem_hal::{Down, Experts};

impl Rows for Down {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<Down, Launch<Down>> =
            tiles::grouped("moe/down_sm90", run_grouped, |d, _| {
                tiles::accepts(&d.experts, d.experts.inter)
            });
        const { &[portable::<Self>("moe/down", run, any), GROUPED] }
    }
}

/// Threads of a block, as the device header has it.
pub(super) const THREADS: u32 = 128;

/// Blocks that make the outputs of a slot.
pub(super) fn tiles(d: &Experts) -> u64 {
    d.hidden.div_ceil(u64::from(THREADS) / dot_lanes(d.inter))
}

fn run(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.w2, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let blocks = tokens * d.experts.top_k * tiles(&d.experts);
    on.rows("moe_down__portable", blocks, THREADS, &arguments)
}

const KERNELS: [&str; 3] = ["moe_down__grouped_8", "moe_down__grouped_16", "moe_down__grouped_32"];

fn run_grouped(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    let e = &d.experts;
    for rows in tiles::launches(on.at(Sym::Tokens)) {
        let (first, tokens) = (rows.start, rows.end - rows.start);
        let idle = tiles::idle_blocks(e, tokens);
        let x = View(tiles::from(io.x, first, 1, e.top_k * e.inter / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let y = View(tiles::from(io.y, first, 2, 0));
        let views = [x, expert, View(io.w2), y];
        let arguments = experts::arguments(&views, e, &[U64(tokens), U32(idle as u32)]);
        let (kernel, shape) = tiles::shape(e, e.inter, e.hidden, tokens, idle);
        on.launch(KERNELS[kernel], &shape, &arguments)?;
    }
    Ok(())
}
