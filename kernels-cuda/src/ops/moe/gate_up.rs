//! Rows of [`GateUp`].

use super::{experts, tiles};
use crate::ops::prelude::*;
use tandem_hal::GateUp;

impl Rows for GateUp {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<GateUp, Launch<GateUp>> =
            tiles::grouped("moe/gate_up_sm90", run_grouped, |d, _| {
                tiles::accepts(&d.experts, d.experts.hidden)
            });
        const { &[portable::<Self>("moe/gate_up", run, any), GROUPED] }
    }
}

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 128;
/// Outputs that a group of lanes makes.
const ROWS: u64 = 4;

fn run(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let views = [io.x, io.expert, io.w1, io.w3, io.y].map(View);
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let each = u64::from(THREADS) / dot_lanes(d.experts.hidden) * ROWS;
    let tiles = (2 * d.experts.inter).div_ceil(each);
    on.rows("moe_gate_up__portable", tokens * d.experts.top_k * tiles, THREADS, &arguments)
}

const KERNELS: [&str; 3] =
    ["moe_gate_up__grouped_8", "moe_gate_up__grouped_16", "moe_gate_up__grouped_32"];

fn run_grouped(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    let e = &d.experts;
    for rows in tiles::launches(on.at(Sym::Tokens)) {
        let (first, tokens) = (rows.start, rows.end - rows.start);
        let idle = tiles::idle_blocks(e, tokens);
        let x = View(tiles::from(io.x, first, 1, e.hidden / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let y = View(tiles::from(io.y, first, 2, 0));
        let views = [x, expert, View(io.w1), View(io.w3), y];
        let arguments = experts::arguments(&views, e, &[U64(tokens), U32(idle as u32)]);
        let (kernel, shape) = tiles::shape(e, e.hidden, 2 * e.inter, tokens, idle);
        on.launch(KERNELS[kernel], &shape, &arguments)?;
    }
    Ok(())
}
