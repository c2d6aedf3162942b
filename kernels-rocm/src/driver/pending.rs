//! Read-backs that are on their way.

use std::sync::Arc;

use super::{Event, Queue, Reservation, Result, Span, Staging};

/// Bytes that a queue will have copied to the host.
#[derive(Debug)]
pub struct Pending {
    staging: Arc<Staging>,
    /// Taken out when this is dropped.
    buffer: Option<Arc<Reservation>>,
    length: usize,
    at: Event,
}

impl Pending {
    pub(super) fn start(
        staging: &Arc<Staging>,
        queue: &Queue,
        from: &[Span],
        buffer: Arc<Reservation>,
    ) -> Result<Pending> {
        let length = from.iter().map(Span::length).sum();
        let at = Event::new(queue.context())?;
        let buffer = Some(buffer);
        let pending = Pending { staging: staging.clone(), buffer, length, at };
        let to = Span::new(pending.buffer(), 0..length as u64)?;
        let mut start = 0;
        let mut copies = from.iter().map(|span| {
            let end = start + span.length() as u64;
            let part = to.part(start..end)?;
            start = end;
            queue.copy(span, &part)
        });
        let copied = copies.try_for_each(|copy| copy);
        // Whatever became of the copies, the buffer is not used again before the queue is past them.
        pending.at.record(queue)?;
        copied.map(|()| pending)
    }

    fn buffer(&self) -> &Arc<Reservation> {
        self.buffer.as_ref().expect("taken out only when it is dropped")
    }

    /// The point behind the copies.
    pub fn at(&self) -> &Event {
        &self.at
    }

    /// Wait for the bytes.
    ///
    /// # Errors
    /// A fault of earlier work.
    pub fn wait(self) -> Result<Vec<u8>> {
        self.at.wait()?;
        let host = self.buffer().host().expect("buffers are pinned");
        let mut bytes = vec![0; self.length];
        // SAFETY: the buffer is at least as long, nobody else reaches it, and the board has written it.
        unsafe { std::ptr::copy_nonoverlapping(host, bytes.as_mut_ptr(), bytes.len()) };
        Ok(bytes)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // A board that cannot pass the point has stopped, and writes nothing any more.
        let _passed = self.at.wait();
        if let Some(buffer) = self.buffer.take() {
            self.staging.give_back(buffer);
        }
    }
}
