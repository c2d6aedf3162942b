//! Rows of [`Mxfp8Linear`].

use super::tile;
use crate::driver::{Argument::Map, Shape, Tile, ViewArgument};
use crate::ops::prelude::*;
use crate::rows::fp8_units;
use tandem_hal::{DeviceInfo, Mxfp8Linear};

/// The bits of rows that multiply by the matrix units of Hopper.
const BLOCKS: &str = "fp8-blocks";

impl Rows for Mxfp8Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("gemm/mxfp8_linear", run, any), NARROW] }
    }
}

fn run(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows("gemm_mxfp8__portable", tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}

/// Tokens on the narrow side of the matrix units, see the kernel.
const NARROW: Row<Mxfp8Linear, Launch<Mxfp8Linear>> =
    fp8_units("narrow", BLOCKS, "gemm/mxfp8_narrow_sm90", run_narrow, accepts_narrow);

/// Rows of the weight in a block, and columns of a stage.
const ROWS: u64 = 64;
const STAGE: u64 = 128;
/// Columns at most, for which the scales of a part fit a block.
const MOST_COLUMNS: u64 = 32_768;

/// Parts of a sum, one a block of a cluster: enough that two blocks have work on each of an H200's 132
/// multiprocessors, none shorter than 512 columns. From the shape alone: the bits follow from it.
fn parts(d: &Mxfp8Linear) -> u64 {
    let mut parts = 1;
    while parts < 8 && d.n.div_ceil(ROWS) * parts < 264 && d.k >= parts * 2 * 512 {
        parts *= 2;
    }
    parts
}

fn accepts_narrow(d: &Mxfp8Linear, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.k > MOST_COLUMNS {
        return Err("the scales of so many columns do not fit a block's memory");
    }
    // Coordinates of the copy engine.
    if d.n > i32::MAX as u64 { Err("more outputs than the copy engine counts") } else { Ok(()) }
}

fn run_narrow(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    if tokens == 0 {
        return Ok(());
    }
    let (width, kernel, threads, most_slots) = match tokens {
        0..=8 => (8, "gemm_mxfp8__narrow_8", 160, 6),
        9..=16 => (16, "gemm_mxfp8__narrow_16", 160, 6),
        17..=32 => (32, "gemm_mxfp8__narrow_32", 288, 4),
        _ => (64, "gemm_mxfp8__narrow_64", 288, 4),
    };
    let (parts, stages) = (parts(d), d.k.div_ceil(STAGE));
    let own = stages.div_ceil(parts);
    let slots = own.min(most_slots);
    let scales = own * (STAGE / 32) * 2 * width * 4;
    let ring = slots * ((ROWS + width) * STAGE + 16) + scales;
    let shared = ring.max(ROWS * width * 4);
    let map = |view: ViewArgument, rows, box_rows| {
        let (cols, pitch, box_cols) = (d.k, d.k, STAGE as u32);
        on.tensor_map(view.codes, &Tile { rows, cols, pitch, box_rows, box_cols, swizzled: true })
    };
    let (weight_map, x_map) = (map(io.weight, d.n, ROWS as u32)?, map(io.x, tokens, width as u32)?);
    let shape = Shape {
        grid: [(d.n.div_ceil(ROWS) * parts) as u32, tokens.div_ceil(width) as u32, 1],
        block: [threads, 1, 1],
        shared_bytes: shared as u32,
        cluster: Some([parts as u32, 1, 1]),
        programmatic: true,
    };
    let [n, k, tokens, parts, slots] = [d.n, d.k, tokens, parts, slots].map(|v| U32(v as u32));
    let views = [io.x, io.weight, io.y].map(View);
    let [x, weight, y] = views;
    let arguments = [Map(&weight_map), Map(&x_map), x, weight, y, n, k, tokens, parts, slots];
    on.launch(kernel, &shape, &arguments)
}
