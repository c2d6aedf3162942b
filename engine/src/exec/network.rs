//! What a model does on a device.

use super::{Batch, DraftBatch, Geometry};
use crate::error::{Error, Result};
use crate::kv::PageKind;
use crate::vision::PictureInput;
use std::ops::Range;
use tandem_hal::{Enc, Stream, View};

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

    /// Runs a step without logits: `take` gets the final normed hidden states `[rows, width]` bf16 of
    /// neighbouring rows, part by part.
    ///
    /// # Errors
    /// [`Error::Internal`] when it has none to show, when the device fails, or those of `take`.
    fn hidden(
        &self,
        batch: &Batch,
        on: &dyn Stream,
        take: &mut dyn FnMut(&View) -> Result<()>,
    ) -> Result<()> {
        let _ = (batch, on, take);
        Err(Error::Internal { invariant: "only models with hidden states embed".into() })
    }

    /// The rows of all pictures in flight, `[cells, width]` bf16; absent when it reads none.
    fn picture_rows(&self) -> View {
        View::absent(Enc::BF16)
    }

    /// Its caches of a kind, `[pages, entries]` each, in an order that stays; none when they may not be
    /// read.
    fn caches(&self, kind: PageKind) -> Vec<View> {
        let _ = kind;
        Vec::new()
    }

    /// Computes the rows of a picture's span and keeps them from `first_row` on.
    ///
    /// # Errors
    /// [`Error::Internal`] when it reads no pictures, or when the device fails.
    fn picture(&self, input: &PictureInput, first_row: u64, on: &dyn Stream) -> Result<()> {
        let _ = (input, first_row, on);
        Err(Error::Internal { invariant: "only models with a vision tower get pictures".into() })
    }

    /// Runs the draft stages.
    ///
    /// # Errors
    /// When the device fails.
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<Drafted>;

    /// Adds to `logits` `[rows, vocab]` the bias of the tokens before, `previous` `[rows]` i32.
    ///
    /// # Errors
    /// When the device fails.
    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()>;

    /// Logits `y` `[rows]` f32 of how likely it is that the tokens of these rows of a draft stand,
    /// given that all before them do. They may depend on the tokens before, `previous` `[rows]` i32,
    /// and not on the tokens themselves.
    ///
    /// # Errors
    /// When the device fails.
    fn confidence(
        &self,
        drafted: &Drafted,
        rows: Range<u64>,
        previous_and_y: (&View, &View),
        on: &dyn Stream,
    ) -> Result<()>;
}

/// What the draft stages computed, before tokens are chosen one block position after the other.
pub struct Drafted {
    /// `[tokens, width]` bf16, collapsed and not normed: what the confidence reads.
    pub hidden: View,
    /// `[tokens, vocab]` f32, without the bias of the token before.
    pub logits: View,
}
