//! Devices of this backend.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use tandem_hal::{
    Alloc, Candidate, Device, DeviceInfo, Error, Kernel, LedgerLine, Op, Options, Place, Result,
    Stream, Want,
};

use crate::driver::{Context, FileMapping, Reservation};
use crate::group::Member;
use crate::kernel::RocmKernel;
use crate::memory::{Line, Memory};
use crate::rows;
use crate::shared::Shared;
use crate::stream::RocmStream;

/// How long the driver may take to register a mapping of a file.
const PATIENCE: Duration = Duration::from_secs(30);

/// One opened board, a rank of its group.
pub(crate) struct RocmDevice {
    shared: Arc<Shared>,
    /// Its memory that the others of the group write to.
    _window: Option<Line>,
}

impl RocmDevice {
    /// Opens a board as a rank of a group, or alone.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the group's memory does not fit.
    pub(crate) fn open(
        context: Arc<Context>,
        info: DeviceInfo,
        options: &Options,
        member: Option<Member>,
    ) -> Result<RocmDevice> {
        let bytes = member.as_ref().map(Member::bytes);
        let shared = Arc::new(Shared::new(info, options.clone(), context, member));
        let window = bytes.map(|n| Line::enter(&shared, n, Place::Group, "collectives"));
        Ok(RocmDevice { shared, _window: window.transpose()? })
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

impl Device for RocmDevice {
    fn info(&self) -> &DeviceInfo {
        self.shared.info()
    }

    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.shared.alive()?;
        let refuse =
            |reason: &str| Err(Error::Unsupported { op: "allocate".into(), reason: reason.into() });
        match place {
            Place::Mapped => refuse("a mapping is of a file; map one"),
            Place::Group if self.info().ranks > 1 => {
                refuse("AMD devices do not address each other's memory yet")
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
        Ok(Box::new(RocmStream::new(&self.shared)?))
    }

    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        rows::table(op, self.info(), want, self.shared.options())
    }

    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        self.shared.alive()?;
        Ok(Arc::new(RocmKernel::prepare(&self.shared, op, want)?))
    }

    fn ledger(&self) -> Vec<LedgerLine> {
        self.shared.ledger().lines()
    }
}
