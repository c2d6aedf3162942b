//! Pinned memory between host and board.

use std::sync::{Arc, Mutex, PoisonError};

use super::ring::Ring;
use super::{Context, Pending, Queue, Reservation, Result, Span};

/// Buffers that the queues of one context share. They are made when first needed, so that a device which
/// has run every kind of step once allocates nothing more.
#[derive(Debug)]
pub struct Staging {
    context: Arc<Context>,
    ring: Mutex<Option<Ring>>,
    /// Buffers of read-backs that nobody waits for.
    free: Mutex<Vec<Arc<Reservation>>>,
}

impl Staging {
    /// Nothing yet.
    pub fn new(context: &Arc<Context>) -> Arc<Staging> {
        let (context, ring, free) = (context.clone(), Mutex::default(), Mutex::default());
        Arc::new(Staging { context, ring, free })
    }

    /// Copy `bytes` to a span of their length; they may be reused when this returns. Even small ones go through
    /// pinned memory: the driver does not promise to have read others when it returns.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    pub fn write(&self, queue: &Queue, to: &Span, bytes: &[u8]) -> Result<()> {
        // A ring is whole between copies, whatever stopped one.
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.is_none() {
            *ring = Some(Ring::new(&self.context)?);
        }
        ring.as_mut().expect("made just now").write(queue, to, bytes)
    }

    /// Queue copies of spans to the host, one behind the other.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    pub fn read_later(self: &Arc<Self>, queue: &Queue, from: &[Span]) -> Result<Pending> {
        let bytes: u64 = from.iter().map(|s| s.length() as u64).sum();
        let buffer = self.take(bytes)?;
        Pending::start(self, queue, from, buffer)
    }

    /// The smallest free buffer with room, or a new one.
    fn take(&self, bytes: u64) -> Result<Arc<Reservation>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(_, b): &(usize, &Arc<Reservation>)| b.bytes() >= bytes;
        let best = free.iter().enumerate().filter(fits).min_by_key(|(_, b)| b.bytes());
        if let Some((i, _)) = best {
            return Ok(free.swap_remove(i));
        }
        drop(free);
        // Sizes in powers of two find each other again.
        let bytes = bytes.next_power_of_two().max(4096);
        Ok(Arc::new(Reservation::pinned(&self.context, bytes)?))
    }

    pub(super) fn give_back(&self, buffer: Arc<Reservation>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}
