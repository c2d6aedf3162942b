//! Pages of the last positions of a sequence.

use super::{OutOfPages, Page, PagePool};
use std::{collections::VecDeque, ops::Range, sync::Arc};

/// Neighbouring pages that follow a sequence's end; those left behind go back to the pool, unless the
/// prefix cache keeps them.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Rolling<const PAGE_TOKENS: u64> {
    /// Which page of the sequence the front one is.
    first: u64,
    pool: PagePool,
    pages: VecDeque<Arc<Page>>,
    /// Of every entry of the pages held, in order: rows of a step copy them by the window.
    addresses: Vec<i32>,
}

impl<const PAGE_TOKENS: u64> Rolling<PAGE_TOKENS> {
    pub(super) fn new(pool: PagePool) -> Self {
        Self { pool, first: 0, pages: VecDeque::new(), addresses: Vec::new() }
    }

    /// Pages that `positions` need and that are not held, at the end only.
    pub(super) fn missing(&self, positions: &Range<u64>) -> u64 {
        self.span(positions).end.saturating_sub(self.end(positions))
    }

    /// Takes so many pages, for [`Rolling::extend`].
    pub(super) fn take(&self, pages: u64) -> Result<Vec<Arc<Page>>, OutOfPages> {
        Ok(self.pool.take(pages)?.into_iter().map(Arc::new).collect())
    }

    /// The pages of positions, or none when some are not held.
    pub(super) fn held(&self, positions: &Range<u64>) -> Vec<Arc<Page>> {
        let Range { start, end } = self.span(positions);
        let held = self.first..self.first + self.pages.len() as u64;
        if start < held.start || end > held.end {
            return Vec::new();
        }
        let pages = self.pages.range((start - held.start) as usize..(end - held.start) as usize);
        pages.cloned().collect()
    }

    /// Holds the pages that were missing for `positions`, or those of another
    /// sequence that hold the same entries.
    pub(super) fn extend(&mut self, positions: &Range<u64>, pages: Vec<Arc<Page>>) {
        if self.pages.is_empty() {
            self.first = self.span(positions).start;
        }
        for page in pages {
            let first = address(page.id() as i32, PAGE_TOKENS, 0);
            self.addresses.extend(first..first + PAGE_TOKENS as i32);
            self.pages.push_back(page);
        }
    }

    /// Gives back every page without one of `positions`.
    pub(super) fn keep(&mut self, positions: &Range<u64>) {
        let span = self.span(positions);
        if span == (self.first..self.first + self.pages.len() as u64) {
            return;
        }
        while self.first + self.pages.len() as u64 > span.end.max(self.first) {
            self.pages.pop_back();
        }
        self.addresses.truncate(self.pages.len() * PAGE_TOKENS as usize);
        self.leave_behind(positions);
    }

    /// Gives back all pages but the first few.
    pub(super) fn truncate(&mut self, pages: usize) {
        self.pages.truncate(pages);
        self.addresses.truncate(pages * PAGE_TOKENS as usize);
    }

    /// Gives back every page but one, which is that of `position`, a page's first, from now on.
    pub(super) fn turn_over(&mut self, position: u64) {
        self.first = position / PAGE_TOKENS;
        self.truncate(1);
    }

    /// Gives back the pages before the first of `positions`.
    pub(super) fn leave_behind(&mut self, positions: &Range<u64>) {
        let start = self.span(positions).start;
        if start <= self.first {
            return;
        }
        let mut left_behind = 0;
        while self.first < start && self.pages.pop_front().is_some() {
            self.first += 1;
            left_behind += PAGE_TOKENS as usize;
        }
        self.addresses.drain(..left_behind);
    }

    /// Address of a position's entry, -1 when its page is not held.
    pub(super) fn address(&self, position: u64) -> i32 {
        self.addresses(&(position..position + 1)).first().copied().unwrap_or(-1)
    }

    /// Addresses of the entries of neighbouring positions whose pages are held, less those in front
    /// whose pages are not.
    pub(super) fn addresses(&self, positions: &Range<u64>) -> &[i32] {
        let base = self.first * PAGE_TOKENS;
        let place = |position: u64| position.saturating_sub(base) as usize;
        self.addresses.get(place(positions.start)..place(positions.end)).unwrap_or(&[])
    }

    pub(super) fn pages(&self) -> impl ExactSizeIterator<Item = &Page> {
        self.pages.iter().map(|page| &**page)
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
        positions.start / PAGE_TOKENS..positions.end.div_ceil(PAGE_TOKENS)
    }
}

/// The address of a slot of a page. Pools are small enough: their entries are checked to be 31-bit
/// when the engine is made.
pub(super) fn address(page: i32, entries: u64, slot: u64) -> i32 {
    i32::try_from(page as u64 * entries + slot).expect("cache addresses are 31-bit")
}
