//! Rows of [`Down`].

use super::tiles;
use crate::ops::prelude::*;
use tandem_hal::Down;

impl Rows for Down {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<Down, Launch<Down>> = tiles::grouped(
            "moe/down_sm90",
            tiles::STAGES,
            run_grouped,
            |d, _| tiles::accepts(&d.experts),
            |d| tiles::suits(&d.experts),
            |d, at| scratch(d, at.at(Sym::Tokens)).needs(),
        );
        const { &[portable::<Self>(), GROUPED] }
    }
}

fn scratch(d: &Down, tokens: u64) -> tiles::Scratch {
    tiles::Scratch::of(&d.experts, d.experts.inter, tokens, 0)
}

fn run_grouped(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    let (e, all) = (&d.experts, on.at(Sym::Tokens));
    let rows = View(scratch(d, all).rows(on));
    for slice in tiles::launches(all) {
        let (first, tokens) = (slice.start, slice.end - slice.start);
        let x = View(tiles::from(io.x, first, 1, e.top_k * e.inter / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let y = View(tiles::from(io.y, first, 2, 0));
        let launch = tiles::Tiles::of(on, e, e.inter, tokens);
        launch.sort("moe_down", expert, rows, &[x, expert, y, rows])?;
        launch.multiply("moe_down", &[io.w2], e.hidden, &[x, View(io.w2), y, rows], &[])?;
    }
    Ok(())
}
