//! What a model does on a device.

use super::{Batch, DraftBatch, Geometry};
use crate::error::Result;
use tandem_hal::{Stream, View};

/// A model with its caches and buffers on one device. Rows are independent of each other, so a
/// row's logits do not depend on what else is in the step.
pub trait Network {
    /// Its sizes.
    fn geometry(&self) -> &Geometry;

    /// Runs a step: `[outputs, vocab]` f32 logits, which stay until the next call.
    ///
    /// # Errors
    /// When the device fails.
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View>;

    /// Runs the draft stages: `[tokens, vocab]` f32 logits without the bias of the token before.
    ///
    /// # Errors
    /// When the device fails.
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<View>;

    /// Adds to `logits` `[rows, vocab]` the bias of the tokens before, `previous` `[rows]` i32.
    ///
    /// # Errors
    /// When the device fails.
    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()>;
}
