//! Rows of [`ExpertUp`].

use super::tiles;
use crate::ops::prelude::*;
use tandem_hal::ExpertUp;

impl Rows for ExpertUp {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<ExpertUp, Launch<ExpertUp>> = tiles::grouped(
            "moe/expert_up_sm90",
            tiles::UP_STAGES,
            run_grouped,
            |d, _| tiles::accepts(&d.experts),
            |d| tiles::suits(&d.experts),
            |d, at| scratch(d, at.at(Sym::Tokens)).needs(),
        );
        const { &[portable::<Self>(), GROUPED] }
    }
}

fn scratch(d: &ExpertUp, tokens: u64) -> tiles::Scratch {
    tiles::Scratch::of(&d.experts, d.experts.hidden, tokens, 0)
}

fn run_grouped(d: &ExpertUp, io: &Arguments<ExpertUp>, on: &Launcher<'_>) -> Result<()> {
    let (e, all) = (&d.experts, on.at(Sym::Tokens));
    let rows = View(scratch(d, all).rows(on));
    for slice in tiles::launches(all) {
        let (first, tokens) = (slice.start, slice.end - slice.start);
        let x = View(tiles::from(io.x, first, 1, e.hidden / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let weight = View(tiles::from(io.weight, first, 4, 0));
        let y = View(tiles::from(io.y, first, 1, e.top_k * e.inter / 32));
        let launch = tiles::Tiles::of(on, e, e.hidden, tokens);
        launch.sort("moe_expert_up", expert, rows, &[x, expert, weight, y, rows])?;
        let views = [x, weight, View(io.w1), View(io.w3), y, rows];
        let rest = [F32(d.limit.value())];
        launch.multiply("moe_expert_up", &[io.w1, io.w3], e.inter, &views, &rest)?;
    }
    Ok(())
}
