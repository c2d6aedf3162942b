//! The lists of rows, on the host.

use super::chunk::Chunk;
use crate::kv::{OPEN_PAGE_TOKENS, PAGE_TOKENS, WINDOW_PAGE_TOKENS};
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
    /// Room for exactly `rows` rows, whose values are unspecified, and no outputs.
    pub(super) fn resize(&mut self, rows: usize, window: u64, history: u64) {
        let Self { id, position, sequence, picture, window_store, open_store, .. } = self;
        let lists = [id, position, sequence, picture, window_store, open_store];
        let per_token = self.visible.iter_mut().chain(&mut self.store);
        per_token.chain(lists).for_each(|list| list.resize(rows, 0));
        self.window_at.resize(rows * window as usize, 0);
        self.open_members.resize(rows * 2, 0);
        self.history.resize(rows * history as usize, 0);
        self.output_at.clear();
    }

    /// Rows so far.
    pub fn tokens(&self) -> u64 {
        self.id.len() as u64
    }

    /// Makes `row` that of a chunk's `position`; its window reaches back to `oldest` at most.
    pub(super) fn set(&mut self, row: usize, chunk: &Chunk<'_>, (position, oldest): (u64, u64)) {
        self.picture[row] = i32::from(chunk.is_picture(position));
        let window = chunk.window_tokens as usize;
        let end = position + 1;
        let first = end.saturating_sub(chunk.window_tokens).max(oldest);
        let seen = chunk.pages.window_addresses(&(first..end));
        let (none, some) =
            self.window_at[row * window..][..window].split_at_mut(window - seen.len());
        none.fill(-1);
        some.copy_from_slice(seen);
        self.window_store[row] = chunk.pages.window_address(position);
        self.id[row] = chunk.id(position);
        self.position[row] = number(position);
        self.place_open(row, chunk.pages.open_address(position), position);
        for (at, ratio) in [1, 2].into_iter().enumerate() {
            self.visible[at][row] = number((position + 1) / ratio);
            self.store[at][row] = chunk.pages.store_address(ratio, position);
        }
        self.place_history(row, chunk, position);
    }

    /// Makes `row` that of a chunk's only position, when it was that of the position before. Entries
    /// of one page lie side by side, so pages are asked for only where one begins.
    pub(super) fn advance(&mut self, row: usize, chunk: &Chunk<'_>) {
        let (pages, position) = (chunk.pages, chunk.start);
        let after = |before: i32, page_tokens: u64| {
            (before >= 0 && !position.is_multiple_of(page_tokens)).then(|| before + 1)
        };
        let own = after(self.window_store[row], WINDOW_PAGE_TOKENS);
        let own = own.unwrap_or_else(|| pages.window_address(position));
        let window = chunk.window_tokens as usize;
        let seen = &mut self.window_at[row * window..][..window];
        seen.copy_within(1.., 0);
        seen[window - 1] = own;
        self.window_store[row] = own;
        let own = after(self.open_store[row], OPEN_PAGE_TOKENS);
        self.place_open(row, own.unwrap_or_else(|| pages.open_address(position)), position);
        let (id, position_number) = (chunk.id(position), number(position));
        (self.id[row], self.position[row]) = (id, position_number);
        let [first, second] = &mut self.visible;
        (first[row], second[row]) = (position_number + 1, (position_number + 1) / 2);
        let [first, second] = &mut self.store;
        let own = after(first[row], PAGE_TOKENS);
        first[row] = own.unwrap_or_else(|| pages.store_address(1, position));
        // Pages of both have the same numbers.
        second[row] = if position % 2 == 1 { first[row] >> 1 } else { -1 };
        let history = chunk.history_tokens as usize;
        let ids = &mut self.history[row * history..][..history];
        // They are few: a copy by call costs more.
        let mut newer = id;
        ids.iter_mut().for_each(|id| newer = std::mem::replace(id, newer));
    }

    /// The open group's row, and the members of the group if it completes one.
    fn place_open(&mut self, row: usize, own: i32, position: u64) {
        self.open_store[row] = own;
        // The members of a group lie side by side on one page.
        let completes = position % 2 == 1 && own >= 0;
        let members = if completes { [own - 1, own] } else { [-1, -1] };
        self.open_members[row * 2..][..2].copy_from_slice(&members);
    }

    fn place_history(&mut self, row: usize, chunk: &Chunk<'_>, position: u64) {
        let (history, last) = (chunk.history_tokens as usize, position as usize);
        let ids = self.history[row * history..][..history].iter_mut();
        let first = (last + 1).checked_sub(history);
        // All that is known, or with drafts or the start among it.
        if let Some(known) = first.and_then(|first| chunk.known.get(first..=last)) {
            let known = known.iter().rev().map(|id| number(u64::from(*id)));
            ids.zip(known).for_each(|(id, known)| *id = known);
        } else {
            let back = |back| position.checked_sub(back).map_or(-1, |at| chunk.id(at));
            ids.zip(0..).for_each(|(id, at)| *id = back(at));
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
