//! What rows of routed experts on the matrix units share.

use crate::ops::prelude::*;
use tandem_hal::{Experts, Extents, Needs, Operator};
use tandem_portable::{Argument, ViewArgument, ops::moe::experts};

/// The bits of rows by FP8, and by bf16: four sections of a row, added in f32.
const SECTIONS: &str = "matrix-sections";
const BF16_SECTIONS: &str = "bf16-sections";
/// The code object.
const TILES: &str = "moe/expert_tiles";

/// Threads of a block, and the side of its tile, as the source has them.
const THREADS: u32 = 256;
const SIDE: u64 = 32;
/// Bytes of a group, and of a pair in the list.
const GROUP: u64 = 16;
const PAIR: u64 = 8;
/// Blocks that make zeros, at most: they go round.
const CLEARERS: u64 = 1 << 16;
/// Blocks of a launch at most.
const MOST_BLOCKS: u64 = 1 << 23;

/// A row of an operator over routed experts.
pub(super) const fn matrix<D: Operator>(
    run: fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>,
    needs: fn(&D, &Extents) -> Needs,
) -> Row<D, Launch<D>> {
    Row { needs, ..tuned("matrix", SECTIONS, ALL, TILES, run) }
}

/// As [`matrix`], of the form that makes bf16 of all codes, which is to be compared with.
pub(super) const fn bf16<D: Operator>(
    run: fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>,
    needs: fn(&D, &Extents) -> Needs,
) -> Row<D, Launch<D>> {
    Row { suits: |_| false, needs, ..tuned("bf16", BF16_SECTIONS, &["gfx942"], TILES, run) }
}

/// What is too large for them.
pub(super) fn accepts(d: &Experts, width: u64) -> std::result::Result<(), &'static str> {
    if d.local.saturating_mul(width.div_ceil(SIDE)) > MOST_BLOCKS {
        return Err("more outputs than a grid has blocks for");
    }
    Ok(())
}

/// Scratch: the pairs by their experts.
pub(super) fn needs(d: &Experts, at: &Extents) -> Needs {
    let pairs = at.at(Sym::Tokens).saturating_mul(d.top_k);
    Needs { workspace_bytes: pairs.saturating_mul(PAIR).saturating_add(d.local * GROUP) }
}

/// Sorts the pairs, then makes `width` outputs of each by `kernel`, which takes `weights`.
pub(super) fn run(
    kernel: &str,
    d: &Experts,
    [x, expert, y]: [ViewArgument; 3],
    weights: &[ViewArgument],
    width: u64,
    on: &Launcher<'_>,
) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    if tokens == 0 {
        return Ok(());
    }
    let lists = View(on.workspace);
    let arguments =
        experts::arguments(&[View(expert), lists, View(y)], d, &[U64(width), U64(tokens)]);
    let clearers = (tokens * d.top_k).min(CLEARERS);
    on.rows("moe_experts__sort", d.local + clearers, THREADS, &arguments)?;
    let weights = weights.iter().copied().map(View);
    let views: Vec<Argument<'static>> =
        std::iter::once(View(x)).chain(weights).chain([lists, View(y)]).collect();
    let blocks = d.local * width.div_ceil(SIDE);
    on.rows(kernel, blocks, THREADS, &experts::arguments(&views, d, &[]))
}
