//! Memory that a board can address.

use super::{Board, Context, FileMapping, Result, failure::check, window::Window};
use cudarc::driver::sys;
use std::{ffi::c_void, ptr, sync::Arc};

/// Memory of a context, freed after every queue of it has passed.
#[derive(Debug)]
pub struct Reservation {
    context: Arc<Context>,
    /// Where kernels find it.
    address: u64,
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
    /// Addressed by several boards.
    Window {
        _window: Window,
    },
}

// SAFETY: the pointer is an address that only the driver frees; nothing here reads through it.
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
        let mut address = 0;
        // SAFETY: writes one address, freed when this is dropped. The driver refuses a size of zero.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1) as usize) })?;
        Ok(Reservation { context: context.clone(), address, bytes, kind: Kind::Device })
    }

    /// Host memory that does not move, visible to the board; its content is unspecified.
    ///
    /// # Errors
    /// As [`Reservation::device`].
    pub fn pinned(context: &Arc<Context>, bytes: u64) -> Result<Reservation> {
        context.bind()?;
        let mut host = ptr::null_mut();
        // Cached on the host: write-combined memory would be slow to read there.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: writes one address, freed when this is dropped.
        let code = unsafe { sys::cuMemHostAlloc(&mut host, bytes.max(1) as usize, flags) };
        check("cuMemHostAlloc", code)?;
        // From here on it is freed whatever comes.
        let kind = Kind::Pinned(host);
        let mut pinned = Reservation { context: context.clone(), address: 0, bytes, kind };
        // SAFETY: the memory was allocated to be mapped; writes one address.
        check("cuMemHostGetDevicePointer", unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut pinned.address, host, 0)
        })?;
        Ok(pinned)
    }

    /// A registered part of a file.
    pub fn mapped(context: &Arc<Context>, mapping: FileMapping) -> Reservation {
        let (address, bytes) = (mapping.address(), mapping.bytes());
        Reservation {
            context: context.clone(),
            address,
            bytes,
            kind: Kind::Mapped { _file: mapping },
        }
    }

    /// Memory of the context's board that each of `boards` may address; its content is unspecified.
    ///
    /// # Errors
    /// What the driver says, such as boards that cannot address each other.
    pub fn window(context: &Arc<Context>, bytes: u64, boards: &[Board]) -> Result<Reservation> {
        let window = Window::new(context, bytes, boards)?;
        let (context, address) = (context.clone(), window.address());
        Ok(Reservation { context, address, bytes, kind: Kind::Window { _window: window } })
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Where kernels find it.
    pub fn address(&self) -> u64 {
        self.address
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
            Kind::Device | Kind::Mapped { .. } | Kind::Window { .. } => None,
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
        match self.kind {
            Kind::Device => {
                // SAFETY: the address is ours, and nothing in flight uses it.
                let _at_the_end = unsafe { sys::cuMemFree_v2(self.address) };
            }
            Kind::Pinned(host) => {
                // SAFETY: as above.
                let _at_the_end = unsafe { sys::cuMemFreeHost(host) };
            }
            // These undo themselves.
            Kind::Mapped { .. } | Kind::Window { .. } => {}
        }
    }
}
