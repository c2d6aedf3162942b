//! Work done, counted.

use super::{Geometry, StepLists, Usage};

/// Rows run so far, padding not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Steps.
    pub steps: u64,
    /// Rows of those steps.
    pub rows: u64,
    /// Rows times layers run on them. The upper half's source counts for the rows that pass it
    /// whole; the entries it makes for the others are a small part of a layer.
    pub layer_rows: u64,
    /// Passes of the draft stages.
    pub drafts: u64,
    /// Drafts verified.
    pub drafted_tokens: u64,
    /// Drafts that stood.
    pub accepted_tokens: u64,
    /// Requests set back for want of pages.
    pub restarts: u64,
}

impl Work {
    pub(super) fn add_step(&mut self, geometry: &Geometry, lists: &StepLists) {
        let (rows, upper_rows) = (lists.rows.tokens(), lists.upper_tokens());
        let lower = geometry.upper.map_or(geometry.layers, |upper| upper.first_layer);
        self.steps += 1;
        self.rows += rows;
        self.layer_rows += rows * lower + upper_rows * (geometry.layers - lower);
    }

    /// The drafts that a request verified between two states of its usage.
    pub(super) fn add_drafts(&mut self, before: Usage, after: Usage) {
        self.drafted_tokens += after.drafted_tokens - before.drafted_tokens;
        self.accepted_tokens += after.accepted_tokens - before.accepted_tokens;
    }
}
