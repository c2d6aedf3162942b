//! The lists of a draft, on the host.

use super::Geometry;
use super::row_lists::number;
use crate::kv::{Page, SequencePages, WINDOW_PAGE_TOKENS};
use std::iter::repeat_n;

/// Everything a [`super::DraftBatch`] is uploaded from. Row `place * sequences + sequence` is the
/// block's `place` of that sequence, so that the rows of one place are neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftLists {
    /// Sequences, padding included.
    pub sequences: u64,
    /// Tokens of a block.
    pub block: u64,
    /// `[rows]`.
    pub id: Vec<i32>,
    /// `[rows]`.
    pub position: Vec<i32>,
    /// `[rows, window + block]`.
    pub window_at: Vec<i32>,
    /// `[rows]`.
    pub window_store: Vec<i32>,
}

/// The token a draft starts from: sampled, not yet computed.
#[derive(Debug, Clone, Copy)]
pub struct Anchor<'a> {
    /// Its id.
    pub id: u32,
    /// Pages of its sequence; they end right before the anchor.
    pub pages: &'a SequencePages,
}

impl DraftLists {
    /// For anchors, padded to `sequences`, with `scratch` window pages for the blocks' own entries.
    ///
    /// # Panics
    /// When the scratch pages do not hold a block for every anchor.
    pub fn new(
        anchors: &[Anchor<'_>],
        sequences: u64,
        scratch: &[Page],
        geometry: &Geometry,
    ) -> Self {
        let (window, block) = (geometry.window_tokens, geometry.draft_block);
        let padding = sequences.saturating_sub(anchors.len() as u64);
        let sequences = anchors.len() as u64 + padding;
        let mut lists = Self { sequences, block, ..Self::default() };
        for place in 0..block {
            for (slot, anchor) in anchors.iter().enumerate() {
                let start = anchor.pages.tokens();
                let own = |place| scratch_address(scratch, slot as u64 * block + place);
                let id = if place == 0 { anchor.id } else { geometry.noise_token };
                lists.id.push(number(u64::from(id)));
                lists.position.push(number(start + place));
                lists.window_at.extend((0..window).map(|i| {
                    let at = (start + i).checked_sub(window);
                    at.map_or(-1, |at| anchor.pages.window_address(at))
                }));
                lists.window_at.extend((0..block).map(own));
                lists.window_store.push(own(place));
            }
            for list in [&mut lists.id, &mut lists.position, &mut lists.window_store] {
                list.extend(repeat_n(-1, padding as usize));
            }
            lists.window_at.extend(repeat_n(-1, (padding * (window + block)) as usize));
        }
        lists
    }

    /// Rows.
    pub fn tokens(&self) -> u64 {
        self.id.len() as u64
    }
}

fn scratch_address(pages: &[Page], entry: u64) -> i32 {
    let page = &pages[(entry / WINDOW_PAGE_TOKENS) as usize];
    number(u64::from(page.id()) * WINDOW_PAGE_TOKENS + entry % WINDOW_PAGE_TOKENS)
}
