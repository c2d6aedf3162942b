//! Work done, counted.

use super::{Geometry, Usage};

/// Places of drafts that are counted apart; the last one stands for those behind it too.
pub const COUNTED_DRAFTS: usize = 8;

/// Rows run so far, padding not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Steps.
    pub steps: u64,
    /// Rows of those steps.
    pub rows: u64,
    /// Of these, rows of prompts, and of answers that are computed again.
    pub prompt_rows: u64,
    /// Rows times layers run on them. The upper half's source counts for the rows that pass it
    /// whole; the entries it makes for the others are a small part of a layer.
    pub layer_rows: u64,
    /// Times that drafts were made, for all requests at once.
    pub drafts: u64,
    /// Times that a request had drafts verified.
    pub verifications: u64,
    /// Drafts verified.
    pub drafted_tokens: u64,
    /// Drafts that stood.
    pub accepted_tokens: u64,
    /// Of these, by their place among the drafts of a step.
    pub accepted_at: [u64; COUNTED_DRAFTS],
    /// Requests that ended because their logits were no numbers.
    pub nan_rows: u64,
    /// Tokens that were given up for want of pages and are computed again.
    pub replayed_tokens: u64,
    /// Requests set back for want of pages.
    pub restarts: u64,
}

impl Work {
    pub(super) fn add_step(&mut self, geometry: &Geometry, rows: u64, upper_rows: u64) {
        let lower = geometry.upper.map_or(geometry.layers, |upper| upper.first_layer);
        self.steps += 1;
        self.rows += rows;
        self.layer_rows += rows * lower + upper_rows * (geometry.layers - lower);
    }

    /// The drafts that a request verified between two states of its usage.
    pub(super) fn add_drafts(&mut self, before: Usage, after: Usage) {
        let drafted = after.drafted_tokens - before.drafted_tokens;
        let accepted = after.accepted_tokens - before.accepted_tokens;
        self.verifications += u64::from(drafted > 0);
        self.drafted_tokens += drafted;
        self.accepted_tokens += accepted;
        for place in 0..accepted as usize {
            self.accepted_at[place.min(COUNTED_DRAFTS - 1)] += 1;
        }
    }
}
