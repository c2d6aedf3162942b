//! Memory of the reference device: host bytes behind a lock, entered in the ledger.

use std::sync::{
    Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tandem_hal::{Alloc, DeviceId, Error, Ledger, LedgerLine, Place, Result, View};

/// Reservations up to this size start as 0xFF, so that reads of unwritten bytes show as NaN. Larger
/// ones start as untouched zero pages: a reservation past 4 GiB costs what is written to it.
const POISON_LIMIT_BYTES: u64 = 64 << 20;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Bytes as words, so that views aligned to four bytes read as f32 without a copy.
pub(crate) struct Memory {
    words: RwLock<Vec<u64>>,
    id: u64,
    ledger: Ledger,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.ledger.strike(self.id);
    }
}

/// A shared lock on the bytes of a reservation.
pub(crate) struct Reading<'a>(RwLockReadGuard<'a, Vec<u64>>);
/// An exclusive lock on the bytes of a reservation.
pub(crate) struct Writing<'a>(RwLockWriteGuard<'a, Vec<u64>>);

impl Reading<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Writing<'_> {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

impl Memory {
    /// Reserve and enter in the ledger.
    pub(crate) fn reserve(
        device: DeviceId,
        ledger: &Ledger,
        capacity_bytes: u64,
        bytes: u64,
        place: Place,
        purpose: &str,
    ) -> Result<Arc<Alloc>> {
        let id = NEXT.fetch_add(1, Relaxed);
        let line = LedgerLine { purpose: purpose.into(), place, bytes };
        ledger.enter(id, line, capacity_bytes)?;
        let poison = if bytes <= POISON_LIMIT_BYTES { u64::MAX } else { 0 };
        let words = RwLock::new(vec![poison; bytes.div_ceil(8) as usize]);
        let inner = Box::new(Memory { words, id, ledger: ledger.clone() });
        Ok(Arc::new(Alloc { id, device, place, bytes, purpose: purpose.into(), inner }))
    }

    /// The memory behind a view.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] when another backend made it.
    pub(crate) fn of(view: &View) -> Result<&Memory> {
        let foreign = Error::ForeignObject { what: "memory" };
        view.alloc().inner.downcast_ref::<Memory>().ok_or(foreign)
    }

    // A panic while a lock was held leaves bytes half written, which is what unspecified content
    // means; the launch that panicked has reported it.
    pub(crate) fn read(&self) -> Reading<'_> {
        Reading(self.words.read().unwrap_or_else(PoisonError::into_inner))
    }
    pub(crate) fn write(&self) -> Writing<'_> {
        Writing(self.words.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether `view` may be copied whole, codes then scales.
pub(crate) fn require_dense(call: &'static str, view: &View) -> Result<()> {
    if view.is_dense() {
        return Ok(());
    }
    let why = "rows are apart, or the layout is private; copy a dense view".into();
    Err(Error::BadOperand { op: call, operand: "view", why })
}
