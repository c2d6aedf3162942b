//! Rows of [`GateUp`].

use super::tiles;
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
        const { &[portable::<Self>(), GROUPED] }
    }
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
