//! Copies to a board through pinned memory: what cannot be registered goes this way.

use super::{Context, Event, Queue, Reservation, Result, Span};
use std::sync::Arc;

/// Bytes of one slot: large enough that starting a copy costs nothing beside it.
const SLOT_BYTES: usize = 8 << 20;
const SLOTS: usize = 4;

/// Pinned memory in slots, filled by the host while the board reads the others.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Vec<Slot>,
    next: usize,
}

#[derive(Debug)]
struct Slot {
    memory: Arc<Reservation>,
    /// Passes when the board has read the slot.
    read: Event,
}

impl Ring {
    pub(super) fn new(context: &Arc<Context>) -> Result<Ring> {
        let slot = |_| {
            let memory = Arc::new(Reservation::pinned(context, SLOT_BYTES as u64)?);
            Ok(Slot { memory, read: Event::new(context)? })
        };
        Ok(Ring { slots: (0..SLOTS).map(slot).collect::<Result<_>>()?, next: 0 })
    }

    /// As [`Queue::write`].
    pub(super) fn write(&mut self, queue: &Queue, to: &Span, bytes: &[u8]) -> Result<()> {
        to.require(bytes.len(), true)?;
        for (i, chunk) in bytes.chunks(SLOT_BYTES).enumerate() {
            let slot = &self.slots[self.next];
            self.next = (self.next + 1) % SLOTS;
            slot.read.wait()?;
            slot.take(chunk);
            let (start, length) = ((i * SLOT_BYTES) as u64, chunk.len() as u64);
            let from = Span::new(&slot.memory, 0..length)?;
            let copied = queue.copy(&from, &to.part(start..start + length)?);
            // Whatever became of the copy, the slot is not filled again before the queue is past it.
            slot.read.record(queue)?;
            copied?;
        }
        Ok(())
    }
}

impl Slot {
    fn take(&self, bytes: &[u8]) {
        let host = self.memory.host().expect("slots are pinned");
        debug_assert!(bytes.len() as u64 <= self.memory.bytes());
        // SAFETY: the slot has room for a chunk, only this ring's owner reaches it, and the board has
        // read what it held before.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, bytes.len()) };
    }
}
