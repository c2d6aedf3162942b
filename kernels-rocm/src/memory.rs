//! Memory of a device: a reservation of the driver's, entered in the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tandem_hal::{Alloc, Error, Layout, Ledger, LedgerLine, Place, Result, View};

use crate::driver::{Reservation, Span};
use crate::shared::Shared;

/// Reservations are numbered from here, so that they never bear the number of another backend's.
static NEXT: AtomicU64 = AtomicU64::new(3 << 61);

/// A line of the ledger, struck out when dropped.
pub(crate) struct Line {
    id: u64,
    ledger: Ledger,
}

impl Line {
    /// Enter what is reserved, or will be.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] by the ledger.
    pub(crate) fn enter(shared: &Shared, bytes: u64, place: Place, purpose: &str) -> Result<Line> {
        let id = NEXT.fetch_add(1, Relaxed);
        let (info, ledger) = (shared.info(), shared.ledger());
        let entry = LedgerLine { purpose: purpose.into(), place, bytes };
        ledger.enter(id, entry, info.memory_bytes)?;
        Ok(Line { id, ledger: ledger.clone() })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.ledger.strike(self.id);
    }
}

/// The backend's handle of an [`Alloc`]. The fields are dropped in order: memory first, then its line.
pub(crate) struct Memory {
    reservation: Arc<Reservation>,
    _line: Line,
}

impl Memory {
    /// Enter in the ledger, then reserve.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] by the ledger or by the driver, and what `reserve` returns.
    pub(crate) fn reserve(
        shared: &Shared,
        bytes: u64,
        place: Place,
        purpose: &str,
        reserve: impl FnOnce() -> Result<Reservation>,
    ) -> Result<Arc<Alloc>> {
        let line = Line::enter(shared, bytes, place, purpose)?;
        let id = line.id;
        let memory = Memory { reservation: Arc::new(reserve()?), _line: line };
        let (device, purpose) = (shared.info().id, purpose.into());
        Ok(Arc::new(Alloc { id, device, place, bytes, purpose, inner: Box::new(memory) }))
    }

    /// The memory behind a view.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] when another backend made it.
    pub(crate) fn of(view: &View) -> Result<&Memory> {
        let foreign = Error::ForeignObject { what: "memory" };
        view.alloc().inner.downcast_ref::<Memory>().ok_or(foreign)
    }

    /// Where kernels find it.
    pub(crate) fn address(&self) -> u64 {
        self.reservation.address()
    }

    /// Codes and scales of a dense view, for copies.
    ///
    /// # Errors
    /// [`Error::BadOperand`] for rows apart and private layouts, [`Error::ForeignObject`] for another
    /// backend's memory.
    pub(crate) fn spans(call: &'static str, view: &View) -> Result<[Span; 2]> {
        if view.layout() != Layout::Plain || !view.is_dense() {
            let why = "rows are apart, or the layout is private; copy a dense view".into();
            return Err(Error::BadOperand { op: call, operand: "view", why });
        }
        let memory = Memory::of(view)?;
        let [codes, scales] = view.spans();
        let span = |range| Span::new(&memory.reservation, range).map_err(Error::from);
        Ok([span(codes)?, span(scales)?])
    }
}
