//! Rows of [`ExpertDown`].

use super::tiles;
use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::ExpertDown;
use tandem_portable::ops::moe::experts;

impl Rows for ExpertDown {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const GROUPED: Row<ExpertDown, Launch<ExpertDown>> = tiles::grouped(
            "moe/expert_down_sm90",
            tiles::DOWN_STAGES,
            run_grouped,
            |d, _| tiles::accepts(&d.experts),
            |d| tiles::suits(&d.experts),
            |d, at| scratch(d, at.at(Sym::Tokens)).needs(),
        );
        const { &[portable::<Self>(), GROUPED] }
    }
}

/// Threads that add, columns that a warp of them takes at once, and warps of a row when there are many
/// rows.
const ADDERS: u64 = 128;
const CHUNK_COLUMNS: u64 = 128;
const FEW_SHARERS: u64 = 5;

/// With the projections of a launch before they are added up, bf16.
fn scratch(d: &ExpertDown, tokens: u64) -> tiles::Scratch {
    tiles::Scratch::of(&d.experts, d.experts.inter, tokens, 2 * d.experts.hidden)
}

fn run_grouped(d: &ExpertDown, io: &Arguments<ExpertDown>, on: &Launcher<'_>) -> Result<()> {
    let (e, all) = (&d.experts, on.at(Sym::Tokens));
    let scratch = scratch(d, all);
    let (rows, each) = (View(scratch.rows(on)), View(scratch.rest(on)));
    for slice in tiles::launches(all) {
        let (first, tokens) = (slice.start, slice.end - slice.start);
        let x = View(tiles::from(io.x, first, 1, e.top_k * e.inter / 32));
        let expert = View(tiles::from(io.expert, first, 4, 0));
        let launch = tiles::Tiles::of(on, e, e.inter, tokens);
        launch.sort("moe_expert_down", expert, rows, &[x, expert, rows])?;
        launch.multiply(
            "moe_expert_down",
            &[io.w2],
            e.hidden,
            &[x, View(io.w2), each, rows],
            &[],
        )?;
        let y = View(tiles::from(io.y, first, 4, 0));
        let chunks = e.hidden.div_ceil(CHUNK_COLUMNS);
        let sharers = if tokens <= 256 { chunks } else { chunks.min(FEW_SHARERS) };
        let rest = [U64(tokens), U32(sharers as u32)];
        let arguments = experts::arguments(&[each, expert, y], e, &rest);
        let grid = [(tokens * sharers).div_ceil(ADDERS / 32) as u32, 1, 1];
        let shape = Shape { grid, programmatic: true, ..Shape::flat(0, ADDERS as u32) };
        on.launch("moe_expert_down__add", &shape, &arguments)?;
    }
    Ok(())
}
