//! Neighbouring rows of one sequence in a step.

use super::row_lists::number;
use crate::kv::SequencePages;
use std::ops::Range;

/// The span of a picture in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSpan {
    /// Position of its first token.
    pub start: u64,
    /// Positions, markers included.
    pub tokens: u64,
    /// The first of its rows among the picture rows; `None` while the tower has not read it, or
    /// when the whole span is computed.
    pub first_row: Option<u64>,
}

impl PictureSpan {
    /// Positions of the span.
    pub fn positions(&self) -> Range<u64> {
        self.start..self.start + self.tokens
    }
}

/// What a step computes of one sequence: prompt tokens, a token and its drafts, or both.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Pages, begun for the chunk's positions.
    pub pages: &'a SequencePages,
    /// Ids from position 0 that are settled.
    pub known: &'a [u32],
    /// Ids that follow and may be rejected.
    pub drafts: &'a [u32],
    /// First position of the chunk.
    pub start: u64,
    /// One past its last.
    pub end: u64,
    /// The first position whose upper half runs.
    pub upper_from: u64,
    /// Pictures of the sequence.
    pub pictures: &'a [PictureSpan],
    /// Positions of a window.
    pub window_tokens: u64,
    /// Ids of history.
    pub history_tokens: u64,
}

impl Chunk<'_> {
    /// The id at a position of the sequence, up to the chunk's end.
    pub(super) fn id(&self, position: u64) -> i32 {
        let at = position as usize;
        let id = self.known.get(at).unwrap_or_else(|| &self.drafts[at - self.known.len()]);
        number(u64::from(*id))
    }

    /// Whether a picture covers a position.
    pub(super) fn is_picture(&self, position: u64) -> bool {
        self.pictures.iter().any(|span| span.positions().contains(&position))
    }

    /// Its positions whose upper half runs.
    pub(super) fn upper_positions(&self) -> Range<u64> {
        self.start.max(self.upper_from)..self.end
    }

    /// Whether a window in the upper half ends earlier than one below.
    pub(super) fn parts_at_the_middle(&self) -> bool {
        (self.start + 1).saturating_sub(self.window_tokens) < self.upper_from
    }
}
