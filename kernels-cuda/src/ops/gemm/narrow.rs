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
/// Shared memory of a block.
const BLOCK_BYTES: u64 = 227 << 10;
/// A slot of a ring with its barriers; slots of a ring at least and at most, as more would leave no room for the blocks of
/// the launch behind; and barriers of a gang besides.
const SLOT_BYTES: u64 = STAGE_BYTES + 16;
const SLOTS: std::ops::RangeInclusive<u64> = 2..=3;
const GANG_BYTES: u64 = 16;
/// Threads of a gang, with the warp that moves its tiles.
const GANG: u64 = 160;

/// Tokens that a kernel takes at once, and gangs of its blocks, as its source has them.
#[derive(Clone, Copy)]
struct Width {
    tokens: u64,
    gangs: u64,
}

const WIDTHS: [Width; 3] =
    [Width { tokens: 8, gangs: 4 }, Width { tokens: 16, gangs: 4 }, Width { tokens: 32, gangs: 3 }];

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
    pub(super) fn parts(&self) -> u64 {
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

    /// Bytes of a block but for its rings.
    fn fixed_bytes(&self, Width { tokens, gangs }: Width) -> u64 {
        let parts = self.parts();
        let x = self.stages().div_ceil(parts) * ROW_BYTES / self.bytes * 2 * tokens;
        let sums = if parts > 1 { ROWS * 4 * tokens } else { 0 };
        x + 4 * tokens + gangs * (sums + GANG_BYTES)
    }

    /// Slots of each ring of a block, as many as there is memory for.
    fn slots(&self, width: Width) -> u64 {
        let room = BLOCK_BYTES.saturating_sub(self.fixed_bytes(width));
        (room / (width.gangs * SLOT_BYTES)).min(*SLOTS.end())
    }

    /// Launch `kernel`, of which there is one for 8, 16 and 32 tokens.
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
        let fitting = WIDTHS.iter().filter(|w| self.slots(**w) >= *SLOTS.start());
        // The least one for all tokens, or the most there is room for.
        let mut widths = fitting.copied();
        let first = widths.next().expect("columns that were accepted fit 8 tokens");
        let width = widths.fold(first, |w, next| if w.tokens < tokens { next } else { w });
        let slots = self.slots(width);
        let (parts, tiles) = (self.parts(), self.tiles());
        let (rows, cols) = (self.groups * self.n, self.k * self.bytes);
        let (box_rows, box_cols) = (ROWS as u32, ROW_BYTES as u32);
        let tile = Tile { rows, cols, pitch: cols, box_rows, box_cols, swizzled: true };
        let map = on.tensor_map(weight.codes, &tile)?;
        // As many clusters as run at a time. Large ones leave some multiprocessors of a group of these unused.
        let whole = if parts > 2 { on.multiprocessors()? * 10 / 11 } else { on.multiprocessors()? };
        let bands = tokens.div_ceil(width.tokens);
        let clusters = (whole / (parts * self.groups * bands)).clamp(1, tiles);
        let shape = Shape {
            grid: [(clusters * parts) as u32, bands as u32, self.groups as u32],
            block: [(width.gangs * GANG) as u32, 1, 1],
            shared_bytes: (self.fixed_bytes(width) + width.gangs * slots * SLOT_BYTES) as u32,
            cluster: Some([parts as u32, 1, 1]),
            programmatic: true,
        };
        let numbers = [self.n, self.k, tokens, parts, slots].map(|v| U32(v as u32));
        let views = views.iter().copied();
        let arguments: Vec<_> = once(map.argument()).chain(views).chain(numbers).collect();
        on.launch(&format!("{kernel}_{}", width.tokens), &shape, &arguments)
    }
}
