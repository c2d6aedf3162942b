//! What a step asks of a model, and what comes back.

use super::{DraftLists, Geometry, StepLists};
use crate::error::{Error, Result};
use crate::kv::PageMemory;
use crate::sample::{Draws, SamplingParameters};
use crate::vision::PictureInput;

/// A model as the sequence engine sees it: rows in, tokens out.
pub trait Forward {
    /// Its sizes.
    fn geometry(&self) -> &Geometry;

    /// Runs the rows and picks the tokens. `samples` match the outputs of the lists in order:
    /// those with drafts first, `draft_block + 1` outputs each, then one each.
    ///
    /// # Errors
    /// When the device fails; no token of the step counts then.
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>>;

    /// Runs the rows without picking tokens: the final normed hidden state of each, `[rows, width]`.
    /// All rows run through all layers.
    ///
    /// # Errors
    /// [`Error::Internal`] when the model has none to show, or as [`Forward::step`].
    fn hidden(&mut self, lists: &StepLists) -> Result<Vec<f32>> {
        let _ = lists;
        Err(Error::Internal { invariant: "only models with hidden states embed".into() })
    }

    /// Steps and drafts that ran as captured.
    fn replays(&self) -> u64 {
        0
    }

    /// What its caches hold, where that can be read and replaced.
    fn page_memory(&mut self) -> Option<&mut dyn PageMemory> {
        None
    }

    /// Computes the rows of a picture's span and keeps them from `first_row` on among the picture
    /// rows, of which [`super::EngineOptions::picture_rows`] were reserved.
    ///
    /// # Errors
    /// [`Error::Internal`] when the model reads no pictures, or as [`Forward::step`].
    fn picture(&mut self, input: &PictureInput, first_row: u64) -> Result<()> {
        let _ = (input, first_row);
        Err(Error::Internal { invariant: "only models with a vision tower get pictures".into() })
    }

    /// Drafts a block for each sequence and keeps the laws it drew from until the next draft.
    ///
    /// # Errors
    /// As [`Forward::step`].
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>>;
}

/// A sequence whose next tokens are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Drafts to verify, in the rows after the first output.
    pub drafts: &'a [u32],
    /// Which sequence of the last draft they are of.
    pub draft_slot: u64,
    /// How the request wants its tokens.
    pub parameters: &'a SamplingParameters,
    /// Its random numbers.
    pub draws: Draws,
    /// Position of the first token wanted.
    pub position: u64,
    /// Ids of the prompt.
    pub prompt: &'a [u32],
    /// Ids generated before.
    pub generated: &'a [u32],
    /// `[1 + drafts, ceil(vocab / 32)]` words, a bit for each id that may come at the row; empty
    /// where any may.
    pub masks: &'a [u32],
}

/// A sequence to draft for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drafter {
    /// Position of the first draft.
    pub position: u64,
    /// Temperature of the request; its filters are for the target only.
    pub temperature: f32,
    /// Its random numbers.
    pub draws: Draws,
}

/// What a sequence got.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// Drafts that stand.
    pub accepted: u64,
    /// The token after them; `None` when the logits of that row were no numbers.
    pub token: Option<u32>,
    /// One for each accepted draft and for the token, when the request asked.
    pub log_probs: Vec<LogProbs>,
}

/// Log-probabilities at one position.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogProbs {
    /// Of the token that was chosen.
    pub chosen: f32,
    /// The most likely ids in falling order, as many as asked for.
    pub top: Vec<(u32, f32)>,
}
