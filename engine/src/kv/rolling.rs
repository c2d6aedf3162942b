//! Pages of the last positions of a sequence.

use super::{OutOfPages, Page, PagePool};
use std::{collections::VecDeque, ops::Range};

/// Neighbouring pages that follow a sequence's end; those left behind go back to the pool.
#[derive(Debug)]
pub(super) struct Rolling {
    pool: PagePool,
    page_tokens: u64,
    /// Which page of the sequence the front one is.
    first: u64,
    pages: VecDeque<Page>,
}

impl Rolling {
    pub(super) fn new(pool: PagePool, page_tokens: u64) -> Self {
        Self { pool, page_tokens, first: 0, pages: VecDeque::new() }
    }

    /// Takes what `positions` need and are not held, at the end only.
    pub(super) fn missing(&self, positions: &Range<u64>) -> Result<Vec<Page>, OutOfPages> {
        self.pool.take(self.span(positions).end.saturating_sub(self.end(positions)))
    }

    /// Holds pages that [`Rolling::missing`] took for the same positions.
    pub(super) fn extend(&mut self, positions: &Range<u64>, pages: Vec<Page>) {
        if self.pages.is_empty() {
            self.first = self.span(positions).start;
        }
        self.pages.extend(pages);
    }

    /// Gives back every page without one of `positions`.
    pub(super) fn keep(&mut self, positions: &Range<u64>) {
        let span = self.span(positions);
        while self.first + self.pages.len() as u64 > span.end.max(self.first) {
            self.pages.pop_back();
        }
        while self.first < span.start && self.pages.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Address of a position's entry, -1 when its page is not held.
    pub(super) fn address(&self, position: u64) -> i32 {
        let page = position / self.page_tokens;
        let held = page.checked_sub(self.first).and_then(|at| self.pages.get(at as usize));
        held.map_or(-1, |page| address(page, self.page_tokens, position % self.page_tokens))
    }

    pub(super) fn pages(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter()
    }

    /// One past the last page held; where the pages of `positions` start when none is.
    fn end(&self, positions: &Range<u64>) -> u64 {
        match self.pages.len() as u64 {
            0 => self.span(positions).start,
            held => self.first + held,
        }
    }

    /// Pages that `positions` touch.
    fn span(&self, positions: &Range<u64>) -> Range<u64> {
        if positions.is_empty() {
            return 0..0;
        }
        positions.start / self.page_tokens..positions.end.div_ceil(self.page_tokens)
    }
}

/// The address of a slot of a page. Pools are small enough: their entries are checked to be 31-bit
/// when the engine is made.
pub(super) fn address(page: &Page, entries: u64, slot: u64) -> i32 {
    i32::try_from(u64::from(page.id()) * entries + slot).expect("cache addresses are 31-bit")
}
