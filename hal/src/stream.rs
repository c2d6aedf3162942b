//! Ordered work on a device.

use crate::{Result, View};
use std::{any::Any, time::Duration};

/// A queue of work, run in order. What one stream does is seen by another after
/// [`Stream::wait`]; nothing else orders two streams.
pub trait Stream: Any + Send {
    /// Copy `bytes` (codes, then scales) into a dense view. Returns when `bytes` may be reused.
    ///
    /// # Errors
    /// When the length is not the view's, the view is not dense, or a capture is open.
    fn write(&self, to: &View, bytes: &[u8]) -> Result<()>;

    /// Copy a dense view (codes, then scales) to the host and wait for it.
    ///
    /// # Errors
    /// As [`Stream::write`].
    fn read(&self, from: &View) -> Result<Vec<u8>>;

    /// Queue a read-back and return at once; the ticket yields the bytes later, so that the host
    /// overlaps with the device.
    ///
    /// # Errors
    /// As [`Stream::write`].
    fn read_later(&self, from: &View) -> Result<Box<dyn Ticket>>;

    /// A point in the queue, for timing and polling. Its ticket yields no bytes.
    ///
    /// # Errors
    /// When the device is lost or a capture is open.
    fn mark(&self) -> Result<Box<dyn Ticket>>;

    /// Set every byte of a dense view.
    ///
    /// # Errors
    /// As [`Stream::write`].
    fn fill(&self, to: &View, byte: u8) -> Result<()>;

    /// Record what `body` launches here, and on streams that fork from this one by
    /// [`Stream::wait`] and join again. Scoped: the capture ends whether or not `body` fails.
    ///
    /// # Errors
    /// What `body` returns, or a fork that was not joined.
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Graph>>;

    /// Queue a recorded graph again, on the same memory.
    ///
    /// # Errors
    /// When the graph belongs to another backend, or the device is lost.
    fn replay(&self, graph: &dyn Graph) -> Result<()>;

    /// Later work here runs after what `other` holds now. Inside a capture it forks or joins; what joined stays
    /// part of the capture, and new work there, or another wait, makes it a fork again.
    ///
    /// # Errors
    /// When `other` belongs to another backend, or a capturing stream would wait on one that is
    /// not part of the capture.
    fn wait(&self, other: &dyn Stream) -> Result<()>;

    /// Wait until the queue is empty; faults of queued work surface here at the latest.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`] and whatever queued work met.
    fn sync(&self) -> Result<()>;
}

/// A recorded sequence of launches. Holds the memory of its operands alive.
pub trait Graph: Any + Send {
    /// Launches recorded.
    fn nodes(&self) -> usize;
}

/// A promise about a point in a queue.
pub trait Ticket: Any + Send {
    /// Whether the point has passed. Never blocks.
    ///
    /// # Errors
    /// As [`Stream::sync`].
    fn ready(&self) -> Result<bool>;

    /// Wait for the point and take what was read back; empty for a mark.
    ///
    /// # Errors
    /// As [`Stream::sync`].
    fn wait(self: Box<Self>) -> Result<Vec<u8>>;

    /// Device time between `earlier` and this point, both passed.
    ///
    /// # Errors
    /// When `earlier` is another backend's or either has not passed.
    fn since(&self, earlier: &dyn Ticket) -> Result<Duration>;
}
