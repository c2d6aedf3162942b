//! What the launches of a model go through besides the caller's queue.

use tandem_hal::{Arena, Device, Enc, Lane, Side, Stream, View};

use super::plans::Needs;
use crate::error::Result;

/// Scratch, and a second queue with scratch of its own for what may go on beside the caller's.
pub struct Lanes {
    workspace: View,
    side: Box<dyn Stream>,
    side_workspace: View,
}

impl Lanes {
    /// As much as plans need.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when memory runs out.
    pub fn new(device: &dyn Device, needs: Needs) -> Result<Self> {
        let scratch = |what: &str, bytes: u64| {
            let shape = [bytes.max(1)];
            let mut arena = Arena::new(device, View::reserved_bytes(Enc::U8, &shape), what)?;
            arena.view(Enc::U8, &shape)
        };
        Ok(Self {
            workspace: scratch("scratch.workspace", needs.workspace_bytes)?,
            side: device.stream()?,
            side_workspace: scratch("scratch.side", needs.side_bytes)?,
        })
    }

    /// The caller's queue with them.
    pub fn lane<'a>(&'a self, stream: &'a dyn Stream) -> Lane<'a> {
        let side = Side { stream: self.side.as_ref(), workspace: &self.side_workspace };
        Lane { stream, workspace: &self.workspace, side: Some(side) }
    }
}
