//! Rows of [`Mxfp8Linear`].

use crate::ops::prelude::*;
use tandem_hal::Mxfp8Linear;

/// The bits of rows on the matrix units: four sections of a row, added in f32.
const SECTIONS: &str = "matrix-sections";
/// The code object of both rows.
const TILES: &str = "gemm/mxfp8_tiles";

/// Threads of a block, and the side of its tile, as the source has them.
const THREADS: u32 = 256;
const NARROW_SIDE: u64 = 32;
const WIDE_SIDE: u64 = 128;
/// Dies of a board, which take blocks in turn.
const DIES: u64 = 8;
/// Tokens up to which a wide block would have less than half of its rows.
const MOST_NARROW: u64 = 64;
/// Columns that a tile's offsets of 32 bits reach, and outputs that a grid has blocks for.
const MOST_COLUMNS: u64 = 1 << 24;
const MOST_OUTPUTS: u64 = 1 << 28;

impl Rows for Mxfp8Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), NARROW, WIDE] }
    }
}

/// Few tokens: a section a wave, straight from memory.
const NARROW: Row<Mxfp8Linear, Launch<Mxfp8Linear>> = Row {
    tokens: 0..=MOST_NARROW,
    accepts: |d, _| accepts(d),
    ..tuned("narrow", SECTIONS, ALL, TILES, run_narrow)
};

/// What is left of the tokens, though it takes any: stages through local memory.
const WIDE: Row<Mxfp8Linear, Launch<Mxfp8Linear>> =
    Row { accepts: |d, _| accepts(d), ..tuned("wide", SECTIONS, ALL, TILES, run_wide) };

fn accepts(d: &Mxfp8Linear) -> std::result::Result<(), &'static str> {
    if d.k > MOST_COLUMNS {
        return Err("so many columns are beyond offsets in a tile");
    }
    if d.n > MOST_OUTPUTS {
        return Err("more outputs than a grid has blocks for");
    }
    Ok(())
}

fn run_narrow(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let tiles = d.n.div_ceil(NARROW_SIDE) * on.at(Sym::Tokens).div_ceil(NARROW_SIDE);
    launch("gemm_mxfp8__narrow", tiles, d, io, on)
}

fn run_wide(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let tiles = d.n.div_ceil(WIDE_SIDE) * on.at(Sym::Tokens).div_ceil(WIDE_SIDE);
    launch("gemm_mxfp8__wide", tiles.next_multiple_of(DIES), d, io, on)
}

/// A block for each tile.
fn launch(
    kernel: &str,
    blocks: u64,
    d: &Mxfp8Linear,
    io: &Arguments<Mxfp8Linear>,
    on: &Launcher<'_>,
) -> Result<()> {
    let [x, weight, y] = [io.x, io.weight, io.y].map(View);
    let arguments = [x, weight, y, U64(d.n), U64(d.k), U64(on.at(Sym::Tokens))];
    on.rows(kernel, blocks, THREADS, &arguments)
}
