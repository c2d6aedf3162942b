//! Launches of linears with the tokens on the narrow side of the matrix units: `device/narrow_tiles.cuh`.

use crate::driver::{Argument, Shape, Tile, ViewArgument};
use crate::ops::prelude::*;
use std::iter::once;

/// Rows of the weight in a tile, bytes of a row in a stage, and of a stage.
const ROWS: u64 = 64;
const ROW_BYTES: u64 = 128;
const STAGE_BYTES: u64 = ROWS * ROW_BYTES;
/// Columns of a part that a block best keeps, and can keep.
const GOOD_COLUMNS: u64 = 1024;
const MOST_COLUMNS: u64 = 2048;
/// Parts of a sum at most, the blocks of a cluster.
const MOST_PARTS: u64 = 8;
/// Parts of tiles to have at least, so that all of an H200's 132 multiprocessors have some.
const ENOUGH: u64 = 132;
/// Shared memory of a block, and of each of two of a multiprocessor.
const BLOCK_BYTES: u64 = 227 << 10;
const HALF_BYTES: u64 = 113 << 10;
/// Scales of two tiles' bands for both gangs.
const SCALES_BYTES: u64 = 2048;
/// A slot of the ring with its barriers, and slots at least and at most.
const SLOT_BYTES: u64 = STAGE_BYTES + 16;
const SLOTS: std::ops::RangeInclusive<u64> = 4..=8;

/// A linear, or one of several groups alike.
pub(super) struct Narrow {
    pub(super) groups: u64,
    pub(super) n: u64,
    pub(super) k: u64,
    /// Of an element of the weight.
    pub(super) bytes: u64,
}

impl Narrow {
    /// Stages of all columns.
    fn stages(&self) -> u64 {
        (self.k * self.bytes).div_ceil(ROW_BYTES)
    }

    fn tiles(&self) -> u64 {
        self.n.div_ceil(ROWS)
    }

    /// Parts of a sum, one a block of a cluster. From the shape alone: the bits follow from it.
    fn parts(&self) -> u64 {
        let good = GOOD_COLUMNS * self.bytes / ROW_BYTES;
        let mut parts = 1;
        while parts < MOST_PARTS
            && (self.stages().div_ceil(parts) > good
                || self.groups * self.tiles() * parts < ENOUGH && self.stages() >= parts * 4)
        {
            parts *= 2;
        }
        parts
    }

    /// Why not, if the kernels cannot do it.
    pub(super) fn accepts(&self) -> std::result::Result<(), &'static str> {
        if self.k > MOST_PARTS * MOST_COLUMNS {
            return Err("so many columns do not fit the memory of a cluster's blocks");
        }
        // Coordinates of the copy engine.
        if self.n.saturating_mul(self.groups) > i32::MAX as u64 {
            return Err("more outputs than the copy engine counts");
        }
        Ok(())
    }

    /// Bytes of a block for `width` tokens of a part, but for its ring.
    fn fixed_bytes(&self, width: u64, own: u64) -> u64 {
        let (x, sums) = (own * ROW_BYTES / self.bytes * 2 * width, 2 * ROWS * 4 * width);
        x + sums + SCALES_BYTES + 4 * width + 16
    }

    /// Launch `kernel`, of which there is one for 8, 16, 32 and 64 tokens.
    ///
    /// # Errors
    /// As [`Launcher::launch`].
    pub(super) fn run(
        &self,
        kernel: &str,
        weight: ViewArgument,
        views: &[Argument<'_>],
        on: &Launcher<'_>,
    ) -> Result<()> {
        let tokens = on.at(Sym::Tokens);
        if tokens == 0 {
            return Ok(());
        }
        let (parts, tiles) = (self.parts(), self.tiles());
        let own = self.stages().div_ceil(parts);
        let fits = |width| self.fixed_bytes(width, own) + SLOTS.start() * SLOT_BYTES <= BLOCK_BYTES;
        let (width, threads) = match tokens {
            0..=8 => (8, 288),
            9..=16 => (16, 288),
            33.. if fits(64) => (64, 384),
            _ => (32, 288),
        };
        let fixed = self.fixed_bytes(width, own);
        // Two blocks a multiprocessor where there are registers and memory for them.
        let two = width <= 16 && fixed + SLOTS.start() * SLOT_BYTES <= HALF_BYTES;
        let (blocks, room) = if two { (2, HALF_BYTES) } else { (1, BLOCK_BYTES) };
        // Even, so that a slot is always the same gang's.
        let slots = ((room - fixed) / SLOT_BYTES).min(*SLOTS.end()) / 2 * 2;
        let (rows, cols) = (self.groups * self.n, self.k * self.bytes);
        let (box_rows, box_cols) = (ROWS as u32, ROW_BYTES as u32);
        let tile = Tile { rows, cols, pitch: cols, box_rows, box_cols, swizzled: true };
        let map = on.tensor_map(weight.codes, &tile)?;
        // As many clusters as run at a time, all of about as many tiles. Large ones leave some multiprocessors of a
        // group of these unused.
        let whole = if parts > 2 { on.multiprocessors()? * 10 / 11 } else { on.multiprocessors()? };
        let bands = tokens.div_ceil(width);
        let clusters = (whole * blocks / (parts * self.groups * bands)).max(1);
        let clusters = tiles.div_ceil(tiles.div_ceil(clusters));
        let shape = Shape {
            grid: [(clusters * parts) as u32, bands as u32, self.groups as u32],
            block: [threads, 1, 1],
            shared_bytes: (fixed + slots * SLOT_BYTES) as u32,
            cluster: Some([parts as u32, 1, 1]),
            programmatic: true,
        };
        let numbers = [self.n, self.k, tokens, parts, slots].map(|v| U32(v as u32));
        let views = views.iter().copied();
        let arguments: Vec<_> = once(map.argument()).chain(views).chain(numbers).collect();
        on.launch(&format!("{kernel}_{width}"), &shape, &arguments)
    }
}
