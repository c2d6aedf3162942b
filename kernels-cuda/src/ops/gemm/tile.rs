//! The tiles that plain linears are made in.

/// Tokens and outputs of a tile, as the device header has it.
const SIDE: u64 = 16;
/// Threads of a block: one an output of a tile.
pub(super) const THREADS: u32 = (SIDE * SIDE) as u32;

/// Tiles of a linear in `groups` blocks of `n` outputs.
pub(super) fn count(groups: u64, n: u64, tokens: u64) -> u64 {
    groups * n.div_ceil(SIDE) * tokens.div_ceil(SIDE)
}
