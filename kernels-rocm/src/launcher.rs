//! From checked operands to launches.

#![allow(unsafe_code)]

use tandem_hal::{Error, Result, View};
use tandem_portable::{Argument, Peers, Target, ViewArgument};

use crate::driver::{Module, Queue};
use crate::group::Member;
use crate::memory::Memory;
use crate::shared::Shared;

/// A queue of a device with a row's code object loaded. Only made for operands that passed the operand check.
pub(crate) struct OnDevice<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) queue: &'a Queue,
    pub(crate) module: &'a Module,
}

impl Target for OnDevice<'_> {
    fn launch(
        &self,
        kernel: &str,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let function = self.module.function(kernel).map_err(Error::from)?;
        let blocks = grid(blocks, threads);
        // SAFETY: every address among the arguments is that of a view which passed the plan's operand
        // check: it lies within its reservation, is of the contract's extents, and no output overlaps
        // another operand. Reservations are freed only after this queue has passed, and graphs hold the
        // views they recorded; windows of a group live as long as any of its ranks. Kernels mask indices and
        // counts outside, as the pages say.
        let launched = unsafe { self.queue.launch(function, blocks, threads, arguments) };
        launched.map_err(|failure| self.shared.fail(failure))
    }

    fn peers(&self) -> Option<&Peers> {
        self.shared.member().map(Member::peers)
    }
}

/// Blocks of a launch: a grid counts its threads in 32 bits, and kernels go round.
fn grid(blocks: u32, threads: u32) -> u32 {
    blocks.min(u32::MAX / threads.max(1))
}

/// An operand as kernels get it.
///
/// # Errors
/// [`Error::ForeignObject`] when its memory is another backend's.
pub(crate) fn argument(view: &View) -> Result<ViewArgument> {
    if view.is_empty() {
        return Ok(ViewArgument::default());
    }
    let base = Memory::of(view)?.address();
    Ok(ViewArgument {
        codes: base + view.offset(),
        scales: base + view.scale_offset(),
        stride: view.stride(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_hold_what_the_board_counts() {
        for (blocks, threads, taken) in
            [(7, 256, 7), (0x7FFF_FFFF, 256, 0xFF_FFFF), (0x7FFF_FFFF, 1024, 0x3F_FFFF)]
        {
            assert_eq!(grid(blocks, threads), taken);
            assert!(u64::from(taken) * u64::from(threads) < 1 << 32);
        }
    }
}
