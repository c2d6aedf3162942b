//! The tiles that plain linears are made in.

use crate::launcher::dot_lanes;

/// Tokens and tiles up to which every output is made alone, as the device header has them.
const FEW: u64 = 16;
const FEW_TILES: u64 = 256;
/// Tokens and outputs of a tile.
const SIDE: u64 = 4;
/// Threads of a block.
pub(super) const THREADS: u32 = 128;

/// Blocks of a linear in `groups` parts of `n` outputs of `k` inputs.
pub(super) fn blocks(groups: u64, n: u64, k: u64, tokens: u64) -> u64 {
    let tiles = |side| groups * n.div_ceil(side) * tokens.div_ceil(side);
    let alone = tokens <= 1 || (tokens <= FEW && tiles(SIDE) <= FEW_TILES);
    let tiles = tiles(if alone { 1 } else { SIDE });
    tiles.div_ceil(u64::from(THREADS) / dot_lanes(k))
}
