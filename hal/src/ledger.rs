//! Who holds which bytes, and why.

use crate::{Error, Place, Result};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// One reservation that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// What it is for.
    pub purpose: String,
    /// Where it lies.
    pub place: Place,
    /// Its bytes.
    pub bytes: u64,
}

/// The book of reservations of one device; backends share this one implementation.
#[derive(Clone, Default)]
pub struct Ledger {
    lines: Arc<Mutex<BTreeMap<u64, LedgerLine>>>,
}

impl Ledger {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<u64, LedgerLine>) -> T) -> T {
        // The map is whole after every statement below, so a poisoned lock still guards it.
        f(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enter reservation `id`, unless device memory of `capacity` bytes cannot take it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with what is free; nothing is entered then.
    pub fn enter(&self, id: u64, line: LedgerLine, capacity: u64) -> Result<()> {
        self.with(|lines| {
            let held: u64 = lines.values().filter(|l| l.place.on_device()).map(|l| l.bytes).sum();
            let free = capacity.saturating_sub(held);
            if line.place.on_device() && line.bytes > free {
                return Err(Error::OutOfMemory { wanted: line.bytes, free, purpose: line.purpose });
            }
            lines.insert(id, line);
            Ok(())
        })
    }

    /// Strike reservation `id` out.
    pub fn strike(&self, id: u64) {
        self.with(|lines| lines.remove(&id));
    }

    /// Every reservation alive, in order of entry.
    pub fn lines(&self) -> Vec<LedgerLine> {
        self.with(|lines| lines.values().cloned().collect())
    }
}
