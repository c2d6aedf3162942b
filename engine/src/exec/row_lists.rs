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
    /// No rows yet, and room for some.
    pub(super) fn with_room(rows: u64, window_tokens: u64, history_tokens: u64) -> Self {
        let list = |columns: u64| Vec::with_capacity((rows * columns) as usize);
        Self {
            id: list(1),
            position: list(1),
            sequence: list(1),
            picture: list(1),
            window_at: list(window_tokens),
            window_store: list(1),
            open_store: list(1),
            open_members: list(2),
            visible: [list(1), list(1)],
            store: [list(1), list(1)],
            history: list(history_tokens),
            output_at: Vec::new(),
        }
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
        self.open_store.push(pages.open_address(position));
        let group = position - position % 2..position + 1;
        self.open_members.extend(match group.clone().count() {
            2 => [group.start, position].map(|member| pages.open_address(member)),
            _ => [-1, -1],
        });
        for (at, ratio) in [1, 2].into_iter().enumerate() {
            let entries = (position + 1) / ratio;
            self.visible[at].push(number(entries));
            self.store[at].push(pages.store_address(ratio, position));
        }
        self.history.extend(
            (0..chunk.history_tokens)
                .map(|back| position.checked_sub(back).map_or(-1, |at| chunk.id(at))),
        );
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
