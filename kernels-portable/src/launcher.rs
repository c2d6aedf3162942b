//! From checked operands to launches.

use crate::{Argument, Peers, Target, ViewArgument};
use tandem_hal::{Extents, Result, Sym};

/// Threads of a block when work items are taken one a thread.
const THREADS: u32 = 256;
/// Lanes of a warp.
const LANES: u64 = 32;
/// Elements that a lane takes at once: a chunk of the device headers.
pub(crate) const CHUNK: u64 = 8;
/// Blocks of a launch at most; kernels go round.
const BLOCKS: u64 = 0x7FFF_FFFF;

/// Where the launches of one operator go.
pub struct Launcher<'a> {
    /// What runs them.
    pub target: &'a dyn Target,
    /// The extents of the operands.
    pub extents: &'a Extents,
    /// Scratch of what the row needs for these extents; bytes, nothing for a row that needs none.
    pub workspace: ViewArgument,
}

impl Launcher<'_> {
    /// The launch's value of a dim.
    pub fn at(&self, sym: Sym) -> u64 {
        self.extents.at(sym)
    }

    /// The group, if it has several ranks.
    pub(crate) fn peers(&self) -> Option<&Peers> {
        self.target.peers()
    }

    /// One thread for each of `items`, as `FOR_EACH_ITEM` of the device headers takes them.
    ///
    /// # Errors
    /// As [`Target::launch`].
    pub(crate) fn items(&self, kernel: &str, items: u64, arguments: &[Argument<'_>]) -> Result<()> {
        self.rows(kernel, items.div_ceil(u64::from(THREADS)), THREADS, arguments)
    }

    /// One warp for each of `items`, as `FOR_EACH_WARP` of the device headers takes them.
    ///
    /// # Errors
    /// As [`Target::launch`].
    pub(crate) fn warps(&self, kernel: &str, items: u64, arguments: &[Argument<'_>]) -> Result<()> {
        self.items(kernel, items.saturating_mul(LANES), arguments)
    }

    /// One block for each of `rows`; kernels go round when there are more than a grid holds. Nothing for none.
    ///
    /// # Errors
    /// As [`Target::launch`].
    pub fn rows(
        &self,
        kernel: &str,
        rows: u64,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        match rows.min(BLOCKS) as u32 {
            0 => Ok(()),
            blocks => self.target.launch(kernel, blocks, threads, arguments),
        }
    }
}

/// Lanes that share a dot product of `width` elements, as `dot_lanes` of the device headers has it.
pub(crate) fn dot_lanes(width: u64) -> u64 {
    width.div_ceil(CHUNK).next_power_of_two().min(LANES)
}

/// Threads that norm a row of `width` elements together, a chunk each, as `norm_row` of the device headers has it.
pub(crate) fn row_threads(width: u64) -> u32 {
    width.div_ceil(CHUNK).next_multiple_of(LANES).min(1024) as u32
}
