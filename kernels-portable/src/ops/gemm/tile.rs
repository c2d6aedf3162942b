//! The tiles that plain linears are made in.

use crate::launcher::dot_lanes;

/// Tokens up to which every output is made alone, as the device header has it.
const FEW: u64 = 1;
/// Tokens and outputs of a tile of more.
const SIDE: u64 = 4;
/// Threads of a block.
pub(super) const THREADS: u32 = 128;

/// Blocks of a linear in `groups` parts of `n` outputs of `k` inputs.
pub(super) fn blocks(groups: u64, n: u64, k: u64, tokens: u64) -> u64 {
    let side = if tokens <= FEW { 1 } else { SIDE };
    let tiles = groups * n.div_ceil(side) * tokens.div_ceil(side);
    tiles.div_ceil(u64::from(THREADS) / dot_lanes(k))
}
