//! Rows of [`GateUp`].

use super::{experts, tiles};
use crate::ops::prelude::*;
use tandem_hal::GateUp;

impl Rows for GateUp {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<GateUp, Launch<GateUp>> = tiles::grouped(
            "moe/gate_up_sm90",
            tiles::STAGES,
            run_grouped,
            |d, _| tiles::accepts(&d.experts),
            |d| tiles::suits(&d.experts),
            |d, at| scratch(d, at.at(Sym::Tokens)).needs(),
        );
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

fn scratch(d: &GateUp, tokens: u64) -> tiles::Scratch {
    tiles::Scratch::of(&d.experts, d.experts.hidden, tokens, 0)
}

fn run_grouped(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    let (e, all) = (&d.experts, on.at(Sym::Tokens));
    let rows = View(scratch(d, all).rows(on));
    for slice in tiles::launches(all) {
        let (first, tokens) = (slice.start, slice.end - slice.start);
        let x = View(tiles::from(io.x, first, 1, e.hidden / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let y = View(tiles::from(io.y, first, 2, 0));
        let launch = tiles::Tiles::of(on, e, e.hidden, tokens);
        launch.sort("moe_gate_up", expert, rows, &[x, expert, y, rows])?;
        let views = [x, View(io.w1), View(io.w3), y, rows];
        launch.multiply("moe_gate_up", &[io.w1, io.w3], e.inter, &views, &[])?;
    }
    Ok(())
}
