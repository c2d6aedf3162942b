//! Memory that a board can address.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::bindings::{hipDeviceMallocFinegrained, hipHostMallocMapped, hipHostMallocPortable};
use super::{Context, FileMapping, Result};

/// Memory of a context, freed after every queue of it has passed.
#[derive(Debug)]
pub struct Reservation {
    context: Arc<Context>,
    /// Where kernels find it.
    address: *mut c_void,
    bytes: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Device,
    /// The address on the host.
    Pinned(*mut c_void),
    /// Registered as long as this lives.
    Mapped {
        _file: FileMapping,
    },
}

// SAFETY: the pointers are addresses that only the driver frees; nothing here reads through them but
// `first_word`, which says why it may.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// The board's own memory; its content is unspecified.
    ///
    /// # Errors
    /// What the driver says, no memory left included.
    pub fn device(context: &Arc<Context>, bytes: u64) -> Result<Reservation> {
        context.bind()?;
        let mut address = ptr::null_mut();
        // SAFETY: writes one address, freed when this is dropped. A size of zero would give none.
        let code = unsafe { (context.hip().hipMalloc)(&mut address, bytes.max(1)) };
        context.check("hipMalloc", code)?;
        Ok(Reservation { context: context.clone(), address, bytes, kind: Kind::Device })
    }

    /// Memory of the context's board that kernels of several boards write to while others read it; its content
    /// is unspecified. Boards address each other's memory once each [reaches](Context::reach) the others.
    ///
    /// # Errors
    /// As [`Reservation::device`].
    pub fn window(context: &Arc<Context>, bytes: u64) -> Result<Reservation> {
        context.bind()?;
        let mut address = ptr::null_mut();
        let allocate = context.hip().hipExtMallocWithFlags;
        // SAFETY: writes one address, freed when this is dropped.
        let code = unsafe { allocate(&mut address, bytes.max(1), hipDeviceMallocFinegrained) };
        context.check("hipExtMallocWithFlags", code)?;
        Ok(Reservation { context: context.clone(), address, bytes, kind: Kind::Device })
    }

    /// Host memory that does not move, visible to the board; its content is unspecified.
    ///
    /// # Errors
    /// As [`Reservation::device`].
    pub fn pinned(context: &Arc<Context>, bytes: u64) -> Result<Reservation> {
        context.bind()?;
        let mut host = ptr::null_mut();
        let flags = hipHostMallocPortable | hipHostMallocMapped;
        // SAFETY: writes one address, freed when this is dropped.
        let code = unsafe { (context.hip().hipHostMalloc)(&mut host, bytes.max(1), flags) };
        context.check("hipHostMalloc", code)?;
        // From here on it is freed whatever comes.
        let kind = Kind::Pinned(host);
        let mut pinned =
            Reservation { context: context.clone(), address: ptr::null_mut(), bytes, kind };
        let locate = context.hip().hipHostGetDevicePointer;
        // SAFETY: the memory was allocated to be mapped; writes one address.
        let code = unsafe { locate(&mut pinned.address, host, 0) };
        context.check("hipHostGetDevicePointer", code)?;
        Ok(pinned)
    }

    /// A registered part of a file.
    pub fn mapped(context: &Arc<Context>, mapping: FileMapping) -> Reservation {
        let (address, bytes) = (mapping.pointer(), mapping.bytes());
        Reservation {
            context: context.clone(),
            address,
            bytes,
            kind: Kind::Mapped { _file: mapping },
        }
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Where kernels find it.
    pub fn address(&self) -> u64 {
        self.address.expose_provenance() as u64
    }

    /// The same for the driver, `offset` bytes further on.
    pub(super) fn pointer(&self, offset: u64) -> *mut c_void {
        self.address.wrapping_byte_add(offset as usize)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        !matches!(self.kind, Kind::Mapped { .. })
    }

    /// The address on the host, of pinned memory.
    pub(super) fn host(&self) -> Option<*mut u8> {
        match self.kind {
            Kind::Pinned(host) => Some(host.cast()),
            Kind::Device | Kind::Mapped { .. } => None,
        }
    }

    /// The first word of pinned memory, as it is at this moment; `None` for other memory.
    pub fn first_word(&self) -> Option<u64> {
        let word = self.host().filter(|_| self.bytes >= size_of::<u64>() as u64)?;
        // SAFETY: as many bytes are there as long as this lives, aligned to a page. A kernel may write
        // them meanwhile, all at once: the read is volatile.
        Some(unsafe { word.cast::<u64>().read_volatile() })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.context.quiesce();
        if self.context.bind().is_err() {
            return;
        }
        let hip = self.context.hip();
        match self.kind {
            Kind::Device => {
                // SAFETY: the address is ours, and nothing in flight uses it.
                let _at_the_end = unsafe { (hip.hipFree)(self.address) };
            }
            Kind::Pinned(host) => {
                // SAFETY: as above.
                let _at_the_end = unsafe { (hip.hipHostFree)(host) };
            }
            // It undoes itself.
            Kind::Mapped { .. } => {}
        }
    }
}
