//! What of a sequence is alive.

use super::SequencePages;
use std::ops::Range;

/// Live entries and their addresses, by what they stand for. Two sequences with the same tokens
/// hold the same bytes at the same entries, whatever steps brought them there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Position and address of each readable window entry (every layer and draft stage).
    pub window: Vec<(u64, i32)>,
    /// Position and address of each member of the incomplete group.
    pub open: Vec<(u64, i32)>,
    /// Entry and address of each compressed entry of one token.
    pub ratio1: Vec<(u64, i32)>,
    /// Entry and address of each compressed entry of two tokens.
    pub ratio2: Vec<(u64, i32)>,
}

impl Snapshot {
    pub(super) fn of(pages: &SequencePages, window: Range<u64>, open: Range<u64>) -> Self {
        let entries = |ratio: u64| {
            let entry = |entry| (entry, pages.entry_address(ratio, entry));
            (0..pages.tokens() / ratio).map(entry).collect()
        };
        Self {
            window: window.map(|at| (at, pages.window_address(at))).collect(),
            open: open.map(|at| (at, pages.open_address(at))).collect(),
            ratio1: entries(1),
            ratio2: entries(2),
        }
    }

    /// Whether every live entry has an address.
    pub fn is_whole(&self) -> bool {
        let lists = [&self.window, &self.open, &self.ratio1, &self.ratio2];
        lists.iter().all(|list| list.iter().all(|(_, address)| *address >= 0))
    }
}
