//! The lists of rows, on the host.

use super::chunk::Chunk;
use std::iter::repeat_n;

/// One list per row quantity; row `i` of every list is the same token. See [`super::Batch`] for what
/// each holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowLists {
    /// `[rows]`.
    pub id: Vec<i32>,
    /// `[rows]`.
    pub position: Vec<i32>,
    /// `[rows]`.
    pub sequence: Vec<i32>,
    /// `[rows]`.
    pub picture: Vec<i32>,
    /// `[rows, window]`.
    pub window_at: Vec<i32>,
    /// `[rows]`.
    pub window_store: Vec<i32>,
    /// `[rows]`.
    pub open_store: Vec<i32>,
    /// `[rows, 2]`.
    pub open_members: Vec<i32>,
    /// `[rows]`, for entries of one token and of two.
    pub visible: [Vec<i32>; 2],
    /// `[rows]`, likewise.
    pub store: [Vec<i32>; 2],
    /// `[rows, history]`.
    pub history: Vec<i32>,
    /// `[outputs]`.
    pub output_at: Vec<i32>,
}

impl RowLists {
    /// Forgets all rows, keeping the room.
    pub(super) fn clear(&mut self) {
        let Self { id, position, sequence, picture, window_at, window_store, .. } = self;
        let lists = [id, position, sequence, picture, window_at, window_store];
        lists.into_iter().for_each(Vec::clear);
        let Self { open_store, open_members, history, output_at, .. } = self;
        [open_store, open_members, history, output_at].into_iter().for_each(Vec::clear);
        self.visible.iter_mut().chain(&mut self.store).for_each(Vec::clear);
    }

    /// Rows so far.
    pub fn tokens(&self) -> u64 {
        self.id.len() as u64
    }

    /// Adds the row of a chunk's `position`; its window reaches back to `oldest` at most.
    pub(super) fn push(&mut self, chunk: &Chunk<'_>, sequence: u64, position: u64, oldest: u64) {
        let pages = chunk.pages;
        self.id.push(chunk.id(position));
        self.position.push(number(position));
        self.sequence.push(number(sequence));
        self.picture.push(i32::from(chunk.is_picture(position)));
        let (window, end) = (chunk.window_tokens, position + 1);
        let seen = pages.window_addresses(&(end.saturating_sub(window).max(oldest)..end));
        self.window_at.extend(repeat_n(-1, window as usize - seen.len()));
        self.window_at.extend_from_slice(seen);
        self.window_store.push(pages.window_address(position));
        // The members of a group lie side by side on one page.
        let own = pages.open_address(position);
        self.open_store.push(own);
        let completes = position % 2 == 1 && own >= 0;
        self.open_members.extend(if completes { [own - 1, own] } else { [-1, -1] });
        let entries = |ratio: u64| number((position + 1) / ratio);
        self.visible[0].push(entries(1));
        self.visible[1].push(entries(2));
        self.store[0].push(pages.store_address(1, position));
        self.store[1].push(pages.store_address(2, position));
        self.push_history(chunk, position);
    }

    fn push_history(&mut self, chunk: &Chunk<'_>, position: u64) {
        let last = position as usize;
        let first = (last + 1).checked_sub(chunk.history_tokens as usize);
        // All that is known, or with drafts or the start among it.
        if let Some(ids) = first.and_then(|first| chunk.known.get(first..=last)) {
            self.history.extend(ids.iter().rev().map(|id| number(u64::from(*id))));
        } else {
            let back = |back| position.checked_sub(back).map_or(-1, |at| chunk.id(at));
            self.history.extend((0..chunk.history_tokens).map(back));
        }
    }

    /// Adds rows that change nothing, up to `tokens` rows and `outputs` outputs.
    pub(super) fn pad(&mut self, tokens: u64, outputs: u64, window: u64, history: u64) {
        let missing = tokens.saturating_sub(self.tokens()) as usize;
        let none = |list: &mut Vec<i32>, columns: u64| {
            list.extend(repeat_n(-1, missing * columns as usize));
        };
        for list in [
            &mut self.id,
            &mut self.position,
            &mut self.sequence,
            &mut self.window_store,
            &mut self.open_store,
        ] {
            none(list, 1);
        }
        none(&mut self.window_at, window);
        none(&mut self.open_members, 2);
        none(&mut self.history, history);
        self.store.iter_mut().for_each(|list| none(list, 1));
        for list in self.visible.iter_mut().chain([&mut self.picture]) {
            list.extend(repeat_n(0, missing));
        }
        self.pad_outputs(outputs);
    }

    /// Adds outputs of no row, up to `outputs`.
    pub(super) fn pad_outputs(&mut self, outputs: u64) {
        let outputs = self.output_at.len().max(outputs as usize);
        self.output_at.resize(outputs, -1);
    }
}

/// A position or count as device lists hold it; contexts are checked to be 31-bit.
pub(super) fn number(value: u64) -> i32 {
    i32::try_from(value).expect("positions, sequences and counts are 31-bit")
}
