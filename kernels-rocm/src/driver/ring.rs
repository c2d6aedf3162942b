//! Writes on their way to a board.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::{Context, Event, Queue, Reservation, Result, Span};

/// Pinned memory of a ring.
const RING_BYTES: u64 = 8 << 20;
/// Most that one copy takes, so that the host fills one part while the board reads others.
const CHUNK_BYTES: usize = 2 << 20;

/// Pinned memory that the host fills and boards read, round and round. Whoever writes waits only when it is full.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Arc<Reservation>,
    /// Where the next copy begins.
    next: u64,
    /// Copies that may not have ended, the oldest first.
    in_flight: VecDeque<(Range<u64>, Event)>,
    /// Events of copies that have.
    idle: Vec<Event>,
}

impl Ring {
    pub(super) fn new(context: &Arc<Context>) -> Result<Ring> {
        let memory = Arc::new(Reservation::pinned(context, RING_BYTES)?);
        Ok(Ring { memory, next: 0, in_flight: VecDeque::new(), idle: vec![] })
    }

    /// Queue a copy of `bytes` to a span of their length; they may be reused when this returns.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    pub(super) fn write(&mut self, queue: &Queue, to: &Span, bytes: &[u8]) -> Result<()> {
        to.require(bytes.len(), true)?;
        for (i, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            let (start, length) = ((i * CHUNK_BYTES) as u64, chunk.len() as u64);
            let place = self.place(length)?;
            let passed = match self.idle.pop() {
                Some(event) => event,
                None => Event::untimed(queue.context())?,
            };
            self.fill(place.start, chunk);
            let from = Span::new(&self.memory, place.clone())?;
            let copied = queue.copy(&from, &to.part(start..start + length)?);
            // Whatever became of the copy, its bytes are not filled again before the queue is past it.
            passed.record(queue)?;
            self.in_flight.push_back((place, passed));
            copied?;
        }
        Ok(())
    }

    /// Bytes that no copy reads any more.
    fn place(&mut self, length: u64) -> Result<Range<u64>> {
        if self.next + length > RING_BYTES {
            self.next = 0;
        }
        let place = self.next..self.next + length;
        while self.in_flight.iter().any(|(taken, _)| overlap(taken, &place)) {
            let Some((_, passed)) = self.in_flight.pop_front() else { break };
            passed.wait()?;
            self.idle.push(passed);
        }
        self.next = place.end;
        Ok(place)
    }

    fn fill(&self, start: u64, bytes: &[u8]) {
        let host = self.memory.host().expect("the ring is pinned");
        debug_assert!(start + bytes.len() as u64 <= self.memory.bytes());
        // SAFETY: `place` gave as many bytes from there, which only this ring's owner reaches, and the board
        // has read what they held before.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), host.add(start as usize), bytes.len());
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}
