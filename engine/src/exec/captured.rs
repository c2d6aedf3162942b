//! Launches recorded once and replayed on the data of the moment.

use crate::error::{Error, Result};
use tandem_hal::{Graph, Stream};

/// A captured graph, and where its launches leave what they compute.
pub(crate) struct Captured<T> {
    graph: Box<dyn Graph>,
    result: T,
}

impl<T> Captured<T> {
    /// Records what `body` launches on `on`; nothing runs.
    pub(crate) fn new(on: &dyn Stream, body: impl Fn() -> Result<T>) -> Result<Self> {
        let mut made = None;
        let graph = on.capture(&mut || {
            made = Some(body());
            Ok(())
        });
        // What went wrong inside says more than a capture that was cut short by it.
        let result = made.transpose()?;
        let invariant = || Error::Internal { invariant: "a capture runs what it records".into() };
        Ok(Self { graph: graph?, result: result.ok_or_else(invariant)? })
    }

    /// Queues the launches again; answers where their results will be.
    pub(crate) fn replay(&self, on: &dyn Stream) -> Result<&T> {
        on.replay(self.graph.as_ref())?;
        Ok(&self.result)
    }
}
