//! Launches of kernels that make tiles of routed experts' outputs by Hopper's matrix units: see
//! `expert_tiles.cuh`.

use crate::driver::{Shape, ViewArgument};
use crate::ops::prelude::*;
use crate::rows::fp8_units;
use std::ops::Range;
use tandem_hal::{DeviceInfo, Experts, Operator};

/// The bits of all of them.
const BLOCKS: &str = "fp4-blocks";

/// Gangs of four warps in a block, rows of the weight in a tile, bytes of them in a stage, blocks of
/// 32 columns in it.
const GANGS: u64 = 2;
const ROWS: u64 = 64;
const ROW_BYTES: u64 = 128;
const DEPTH: u64 = 8;
/// Pairs of a row and a slot that one block looks at for those without an expert here.
const IDLE_PAIRS: u64 = 512;
/// Rows of data in a launch at most: every block looks through all pairs, and counts them in 32 bits.
pub(super) const MOST_TOKENS: u64 = 65_536;
/// Slots of a row at most.
const MOST_SLOTS: u64 = 64;
/// Shared memory of a block at most, less what kernels have of their own.
const MOST_BYTES: u64 = 225 * 1024;

/// What rows of data a block makes at a time, by kernel, and the stages of their rings.
const WIDTHS: [(u64, u64); 3] = [(8, 4), (16, 4), (32, 3)];

/// A row of an operator over routed experts.
pub(super) const fn grouped<D: Operator>(
    image: &'static str,
    run: fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>,
    accepts: fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>,
) -> Row<D, Launch<D>> {
    fp8_units("grouped", BLOCKS, image, run, accepts)
}

/// What is too large for them, for products of `columns`.
pub(super) fn accepts(d: &Experts, columns: u64) -> std::result::Result<(), &'static str> {
    if shared_bytes(WIDTHS[0], columns) > MOST_BYTES {
        return Err("the scales of so many columns do not fit a block's memory");
    }
    if d.local > 32_768 || d.top_k > MOST_SLOTS {
        return Err("more experts than a launch has blocks for");
    }
    Ok(())
}

fn shared_bytes((width, slots): (u64, u64), columns: u64) -> u64 {
    let blocks = (columns / 32).next_multiple_of(DEPTH);
    let rings = GANGS * slots * (ROWS + 2 * width) * ROW_BYTES;
    rings + blocks * width * 4 + ROWS * (blocks / 4 + 1) * 4
}

/// Rows of data of each launch.
pub(super) fn launches(tokens: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..tokens).step_by(MOST_TOKENS as usize);
    starts.map(move |first| first..tokens.min(first + MOST_TOKENS))
}

/// An operand from row `first` on, of so many bytes a unit and scales a row.
pub(super) fn from(view: ViewArgument, first: u64, bytes: u64, scales: u64) -> ViewArgument {
    let (codes, scales) = (first * view.stride * bytes, first * scales);
    ViewArgument { codes: view.codes + codes, scales: view.scales + scales, ..view }
}

/// Blocks in front that see to slots without an expert here.
pub(super) fn idle_blocks(d: &Experts, tokens: u64) -> u64 {
    (tokens * d.top_k).div_ceil(IDLE_PAIRS)
}

/// Which kernel takes `tokens` rows of data, and its launch: each expert's weight is read once for as
/// many rows as the kernel takes, so it is the least for which few experts get more. The choice does
/// not show in the results.
pub(super) fn shape(
    d: &Experts,
    columns: u64,
    outputs: u64,
    tokens: u64,
    idle: u64,
) -> (usize, Shape) {
    let expected = tokens.saturating_mul(d.top_k) / d.total;
    let mut kernel = match expected {
        _ if tokens <= 8 => 0,
        0..=2 => 0,
        3..=8 => 1,
        _ => 2,
    };
    while shared_bytes(WIDTHS[kernel], columns) > MOST_BYTES {
        kernel -= 1;
    }
    let shape = Shape {
        grid: [outputs.div_ceil(ROWS) as u32, (d.local + idle) as u32, 1],
        block: [GANGS as u32 * 128, 1, 1],
        shared_bytes: shared_bytes(WIDTHS[kernel], columns) as u32,
        cluster: None,
        programmatic: true,
    };
    (kernel, shape)
}
