//! Launches of linears with many tokens on the matrix units: `mxfp8_wide_sm90.cu`.

use crate::driver::{Shape, Tile, ViewArgument};
use crate::ops::prelude::*;
use tandem_hal::Needs;

/// Tokens of a launch at most: scratch holds all of them.
const MOST_TOKENS: u64 = 4096;
/// Rows of the weight in a tile, and bytes of a row of either side in a slot of a ring.
const ROWS: u64 = 128;
const ROW_BYTES: u64 = 128;
/// Blocks of a cluster, which have neighbouring rows and the same tokens.
const PEERS: u64 = 2;
/// Threads of a block that multiply, of all of it, and of one that makes f16 of a row.
const WORKERS: u64 = 256;
const THREADS: u32 = 384;
const ROW_THREADS: u32 = 256;
/// Shared memory of a block, and what of it warps exchange.
const BLOCK_BYTES: u64 = 227 << 10;
const EXCHANGE_BYTES: u64 = WORKERS / 32 * 1280;
/// Barriers of a slot.
const BARRIER_BYTES: u64 = 16;
/// Slots of the ring of x at most.
const MOST_SLOTS: u64 = 8;
/// Units of a row.
const UNITS_BYTES: u64 = 32;
/// Tokens of a tile, of which there is a kernel each.
const WIDTHS: [u64; 3] = [128, 160, 192];
/// What a tile costs beside its tokens, in such. Measured.
const TILE_COST: u64 = 16;

/// A linear and the parts of its columns.
pub(super) struct Wide {
    pub(super) n: u64,
    pub(super) k: u64,
    pub(super) parts: u64,
}

impl Wide {
    /// Bytes of the rows of x as f16.
    fn rows_bytes(&self, tokens: u64) -> u64 {
        tokens.min(MOST_TOKENS).saturating_mul(self.k * 2)
    }

    pub(super) fn needs(&self, tokens: u64) -> Needs {
        let units = tokens.min(MOST_TOKENS) * UNITS_BYTES;
        Needs { workspace_bytes: self.rows_bytes(tokens).saturating_add(units) }
    }

    /// # Errors
    /// As [`Launcher::launch`].
    pub(super) fn run(&self, io: [ViewArgument; 3], on: &Launcher<'_>) -> Result<()> {
        let all = on.at(Sym::Tokens);
        for first in (0..all).step_by(MOST_TOKENS as usize) {
            let [mut x, weight, mut y] = io;
            x.codes += first * self.k;
            x.scales += first * (self.k / 32);
            y.codes += first * y.stride * 2;
            self.launch([x, weight, y], MOST_TOKENS.min(all - first), on)?;
        }
        Ok(())
    }

    fn launch(
        &self,
        [x, weight, y]: [ViewArgument; 3],
        tokens: u64,
        on: &Launcher<'_>,
    ) -> Result<()> {
        let codes = on.workspace.codes;
        let scales = codes + self.rows_bytes(tokens);
        let rows = View(ViewArgument { codes, scales, ..ViewArgument::default() });
        let [k, parts] = [self.k, self.parts].map(|v| U32(v as u32));
        let shape = Shape { programmatic: true, ..Shape::flat(tokens as u32, ROW_THREADS) };
        on.launch("gemm_mxfp8__wide_rows", &shape, &[View(x), rows, k, parts])?;

        let most = on.multiprocessors()? / PEERS;
        let items = |width| self.n.div_ceil(ROWS * PEERS) * tokens.div_ceil(width);
        // What a block makes one after the other.
        let work = |width: &u64| items(*width).div_ceil(most.max(1)) * (width + TILE_COST);
        let width = WIDTHS.into_iter().min_by_key(work).expect("there are some");
        let (weight_slots, x_slots, shared_bytes) = self.slots(width);
        let map = |address, rows, cols, box_rows: u64| {
            let (box_rows, box_cols) = (box_rows as u32, ROW_BYTES as u32);
            on.tensor_map(
                address,
                &Tile { rows, cols, pitch: cols, box_rows, box_cols, swizzled: true },
            )
        };
        let weight_map = map(weight.codes, self.n, self.k, ROWS)?;
        let x_map = map(codes, tokens, self.k * 2, width / PEERS)?;
        let shape = Shape {
            grid: [(items(width).min(most.max(1)) * PEERS) as u32, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: shared_bytes as u32,
            cluster: Some([PEERS as u32, 1, 1]),
            programmatic: true,
        };
        let numbers = [self.n, self.k, tokens, self.parts, weight_slots, x_slots];
        let maps = [weight_map.argument(), x_map.argument(), View(x), View(weight), View(y), rows];
        let arguments = [&maps[..], &numbers.map(|v| U32(v as u32))].concat();
        on.launch(&format!("gemm_mxfp8__wide_{width}"), &shape, &arguments)
    }

    /// Slots of both rings, and bytes of a block: as many as there is memory for beside sums of parts.
    fn slots(&self, width: u64) -> (u64, u64, u64) {
        let (totals, weight_slots) = match self.parts {
            1 => (0, 4),
            // So that three slots are left to x.
            _ if width == 192 => (width * WORKERS * 2, 2),
            _ => (width * WORKERS * 2, 3),
        };
        let units = 16 * width;
        let weight_bytes = weight_slots * (ROWS * ROW_BYTES + BARRIER_BYTES);
        let fixed = totals + EXCHANGE_BYTES + units + weight_bytes;
        let slot = width * ROW_BYTES + BARRIER_BYTES;
        let x_slots = ((BLOCK_BYTES - fixed) / slot).min(MOST_SLOTS);
        (weight_slots, x_slots, fixed + x_slots * slot)
    }
}
