//! Devices of this backend.

use crate::{
    driver::{Board, Context, FileMapping, Reservation},
    group::Member,
    image,
    kernel::CudaKernel,
    memory::{Line, Memory},
    rows,
    shared::Shared,
    stream::CudaStream,
};
use std::{
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tandem_hal::{
    Alloc, Candidate, Capabilities, Device, DeviceId, DeviceInfo, Dialect, Error, Kernel,
    LedgerLine, Op, Options, Place, Result, Stream, Want,
};

/// How long the driver may take to register a mapping of a file.
const PATIENCE: Duration = Duration::from_secs(30);

/// Devices are numbered from here, so that they never bear the number of another backend's.
static NEXT: AtomicU64 = AtomicU64::new(1 << 61);

/// One opened board, a rank of its group.
pub struct CudaDevice {
    shared: Arc<Shared>,
    /// Its memory that the others of the group write to.
    _window: Option<Line>,
}

/// Facts that the driver does not tell, or tells otherwise.
pub(crate) fn info(
    name: String,
    board: String,
    capability: (i32, i32),
    memory_bytes: u64,
    shared_memory_bytes: u64,
) -> DeviceInfo {
    let (major, minor) = capability;
    let arch = image::target(capability).map_or_else(|| format!("sm_{major}{minor}"), Into::into);
    DeviceInfo {
        id: DeviceId(NEXT.fetch_add(1, Relaxed)),
        name,
        board,
        arch,
        memory_bytes,
        capabilities: Capabilities {
            dialect: Dialect::Fn,
            fp4_units: major >= 10,
            shared_memory_bytes,
            lanes: 32,
        },
        rank: 0,
        ranks: 1,
    }
}

/// Facts of a board that need not be opened.
///
/// # Errors
/// What the driver says.
pub(crate) fn info_of(board: Board, ordinal: usize) -> Result<DeviceInfo> {
    let (memory_bytes, shared_memory_bytes) = (board.memory_bytes()?, board.shared_memory_bytes()?);
    let name = format!("cuda:{ordinal}");
    Ok(info(name, board.name()?, board.capability()?, memory_bytes, shared_memory_bytes))
}

impl CudaDevice {
    /// Opens a board as a rank of a group, or alone.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the group's memory does not fit.
    pub(crate) fn open(
        context: Arc<Context>,
        info: DeviceInfo,
        options: &Options,
        member: Option<Member>,
    ) -> Result<CudaDevice> {
        let bytes = member.as_ref().map(Member::bytes);
        let shared = Arc::new(Shared::new(info, options.clone(), context, member));
        let window = bytes.map(|n| Line::enter(&shared, n, Place::Group, "collectives"));
        Ok(CudaDevice { shared, _window: window.transpose()? })
    }

    fn reserve(&self, bytes: u64, place: Place, purpose: &str) -> Result<Reservation> {
        let context = self.shared.context();
        let reserved = match place {
            Place::Pinned => Reservation::pinned(context, bytes),
            _ => Reservation::device(context, bytes),
        };
        reserved.map_err(|failure| {
            if !failure.is_out_of_memory() {
                return self.shared.fail(failure);
            }
            // The ledger had room: somebody else holds memory of the board, or the host has no more.
            let free = if place == Place::Pinned { 0 } else { context.free_bytes().unwrap_or(0) };
            Error::OutOfMemory { wanted: bytes, free, purpose: purpose.into() }
        })
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        self.shared.info()
    }

    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.shared.alive()?;
        let refuse = |op: &str, reason: &str| {
            Err(Error::Unsupported { op: op.into(), reason: reason.into() })
        };
        match place {
            Place::Mapped => refuse("allocate", "a mapping is of a file; map one"),
            Place::Group if self.info().ranks > 1 => {
                refuse("allocate", "CUDA devices do not address each other's memory yet")
            }
            Place::Device | Place::Group | Place::Pinned => {
                let reserve = || self.reserve(bytes, place, purpose);
                Memory::reserve(&self.shared, bytes, place, purpose, reserve)
            }
        }
    }

    fn map(&self, file: &File, offset: u64, bytes: u64, purpose: &str) -> Result<Arc<Alloc>> {
        self.shared.alive()?;
        let context = self.shared.context();
        let map = || {
            let mapping = FileMapping::register(context, file, offset, bytes, PATIENCE);
            let mapping = mapping.map_err(|why| Error::Unsupported {
                op: "map".into(),
                reason: format!("{why}; read {purpose} by position"),
            })?;
            Ok(Reservation::mapped(context, mapping))
        };
        Memory::reserve(&self.shared, bytes, Place::Mapped, purpose, map)
    }

    fn stream(&self) -> Result<Box<dyn Stream>> {
        self.shared.alive()?;
        Ok(Box::new(CudaStream::new(&self.shared)?))
    }

    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        rows::table(op, self.info(), want, self.shared.options())
    }

    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        self.shared.alive()?;
        Ok(Arc::new(CudaKernel::prepare(&self.shared, op, want)?))
    }

    fn ledger(&self) -> Vec<LedgerLine> {
        self.shared.ledger().lines()
    }
}
