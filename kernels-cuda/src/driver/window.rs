//! Memory of one board that several boards address.

use super::{Board, Context, Result, failure::check};
use cudarc::driver::sys::{
    self, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemAllocationType, CUmemLocation, CUmemLocationType,
};
use std::{mem, sync::Arc};

/// Mapped as long as this lives. Only this memory: other reservations stay the board's own, so that making
/// one never waits for another board.
#[derive(Debug)]
pub(super) struct Window {
    context: Arc<Context>,
    handle: u64,
    /// 0 until it is reserved.
    address: u64,
    bytes: usize,
    mapped: bool,
}

fn location(board: Board) -> CUmemLocation {
    // SAFETY: a plain structure of the driver's, for which zeros are valid.
    let mut location: CUmemLocation = unsafe { mem::zeroed() };
    location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = board.handle();
    location
}

impl Window {
    /// `bytes` or a little more on the context's board.
    pub(super) fn new(context: &Arc<Context>, bytes: u64, boards: &[Board]) -> Result<Window> {
        context.bind()?;
        // SAFETY: as above.
        let mut kind: CUmemAllocationProp = unsafe { mem::zeroed() };
        kind.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        kind.location = location(context.board());
        let mut step = 0;
        let best = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: reads the structure and writes one size.
        let code = unsafe { sys::cuMemGetAllocationGranularity(&mut step, &kind, best) };
        check("cuMemGetAllocationGranularity", code)?;
        let bytes = (bytes.max(1) as usize).next_multiple_of(step.max(1));
        let mut handle = 0;
        // SAFETY: writes one handle, released when this is dropped.
        check("cuMemCreate", unsafe { sys::cuMemCreate(&mut handle, bytes, &kind, 0) })?;
        // From here on it is undone whatever comes.
        let mut window =
            Window { context: context.clone(), handle, address: 0, bytes, mapped: false };
        // SAFETY: writes one address, freed when this is dropped.
        check("cuMemAddressReserve", unsafe {
            sys::cuMemAddressReserve(&mut window.address, bytes, 0, 0, 0)
        })?;
        // SAFETY: both are ours, and as large.
        check("cuMemMap", unsafe { sys::cuMemMap(window.address, bytes, 0, handle, 0) })?;
        window.mapped = true;
        let mut access: Vec<CUmemAccessDesc> = vec![];
        for board in boards {
            let location = location(*board);
            // A board may be several ranks.
            if access.iter().all(|known| known.location.id != location.id) {
                let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
                access.push(CUmemAccessDesc { location, flags });
            }
        }
        // SAFETY: the addresses are mapped; the driver reads as many structures as there are.
        check("cuMemSetAccess", unsafe {
            sys::cuMemSetAccess(window.address, bytes, access.as_ptr(), access.len())
        })?;
        Ok(window)
    }

    /// Where kernels of every board find it.
    pub(super) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.context.bind().is_err() {
            return;
        }
        if self.mapped {
            // SAFETY: mapped by us; whoever owns this waits for what is in flight.
            let _at_the_end = unsafe { sys::cuMemUnmap(self.address, self.bytes) };
        }
        if self.address != 0 {
            // SAFETY: reserved by us, and nothing is mapped there any more.
            let _at_the_end = unsafe { sys::cuMemAddressFree(self.address, self.bytes) };
        }
        // SAFETY: made by us; the last reference.
        let _at_the_end = unsafe { sys::cuMemRelease(self.handle) };
    }
}
