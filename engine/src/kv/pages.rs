//! The cache pages of one sequence.

use super::rolling::{Rolling, address};
use super::{
    OPEN_PAGE_TOKENS, OutOfPages, PAGE_TOKENS, Page, PagePools, Snapshot, WINDOW_PAGE_TOKENS,
};
use std::ops::Range;

/// Tokens of the largest compressed group. Groups do not overlap.
pub(super) const GROUP_TOKENS: u64 = 2;

/// The pages of a sequence and how far they are filled. Dropping it gives every page back.
///
/// All writing happens between [`SequencePages::begin`] and [`SequencePages::commit`]; what a
/// commit rolls back is as if it had never been begun.
#[derive(Debug)]
pub struct SequencePages {
    pools: PagePools,
    window_tokens: u64,
    tokens: u64,
    compressed: Vec<Page>,
    window: Rolling,
    open: Rolling,
}

/// An open step of a sequence: positions that have pages but do not count yet.
#[derive(Debug)]
#[must_use = "a step that is begun is committed, with 0 tokens to undo it"]
pub struct Checkpoint {
    from: u64,
    tokens: u64,
}

impl SequencePages {
    /// No pages yet. `window_tokens` positions before the next one stay readable.
    pub fn new(pools: &PagePools, window_tokens: u64) -> Self {
        Self {
            pools: pools.clone(),
            window_tokens,
            tokens: 0,
            compressed: Vec::new(),
            window: Rolling::new(pools.window.clone(), WINDOW_PAGE_TOKENS),
            open: Rolling::new(pools.open.clone(), OPEN_PAGE_TOKENS),
        }
    }

    /// Positions whose state is kept.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Takes pages for the next `tokens` positions, which may then be written. Nothing that an
    /// earlier position can still be rolled back to is given up before the commit.
    ///
    /// # Errors
    /// [`OutOfPages`]; the sequence is then as it was.
    pub fn begin(&mut self, tokens: u64) -> Result<Checkpoint, OutOfPages> {
        let from = self.tokens;
        let reach = from..from + tokens;
        let (windows, groups) = (self.window_reach(&reach), self.open_reach(&reach));
        let held = self.compressed.len() as u64;
        let wanted = reach.end.div_ceil(PAGE_TOKENS).saturating_sub(held);
        // Each is dropped, and so given back, when a later one fails.
        let compressed = self.pools.compressed.take(wanted)?;
        let window = self.window.missing(&windows)?;
        let open = self.open.missing(&groups)?;
        self.compressed.extend(compressed);
        self.window.extend(&windows, window);
        self.open.extend(&groups, open);
        Ok(Checkpoint { from, tokens })
    }

    /// Keeps the first `kept` positions of a step and rolls the others back; then gives back every
    /// page that no later step can reach.
    ///
    /// # Panics
    /// When the checkpoint is not this sequence's open step, or holds fewer positions.
    #[expect(clippy::needless_pass_by_value, reason = "a checkpoint is committed once")]
    pub fn commit(&mut self, step: Checkpoint, kept: u64) {
        let Checkpoint { from, tokens } = step;
        assert_eq!(from, self.tokens, "a step is committed to the sequence it was begun on");
        assert!(kept <= tokens, "a commit keeps no more than was begun");
        self.tokens = from + kept;
        self.compressed.truncate(self.tokens.div_ceil(PAGE_TOKENS) as usize);
        let end = self.tokens..self.tokens;
        self.window.keep(&self.window_reach(&end));
        self.open.keep(&self.open_reach(&end));
    }

    /// Address of a position's window entry, -1 when it is out of reach.
    pub fn window_address(&self, position: u64) -> i32 {
        self.window.address(position)
    }

    /// Address of a position's open-group row, -1 when it is out of reach.
    pub fn open_address(&self, position: u64) -> i32 {
        self.open.address(position)
    }

    /// Address of a compressed entry of `ratio` tokens, -1 when it has no page.
    pub fn entry_address(&self, ratio: u64, entry: u64) -> i32 {
        let entries = PAGE_TOKENS / ratio;
        let page = self.compressed.get((entry / entries) as usize);
        page.map_or(-1, |page| address(page, entries, entry % entries))
    }

    /// The page table of the compressed caches.
    pub fn table(&self) -> impl ExactSizeIterator<Item = i32> + '_ {
        // Ids are 31-bit by the pool's construction.
        self.compressed.iter().map(|page| page.id() as i32)
    }

    /// Every address that a later step may read.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self, self.live_window(), self.live_open())
    }

    /// Pages of compressed entries.
    pub fn compressed_pages(&self) -> impl Iterator<Item = &Page> {
        self.compressed.iter()
    }

    /// Pages of window entries.
    pub fn window_pages(&self) -> impl Iterator<Item = &Page> {
        self.window.pages()
    }

    /// Pages of open-group rows.
    pub fn open_pages(&self) -> impl Iterator<Item = &Page> {
        self.open.pages()
    }

    /// Window positions a later step may read: the draft's context, one more than a query's own.
    fn live_window(&self) -> Range<u64> {
        self.tokens.saturating_sub(self.window_tokens)..self.tokens
    }

    /// Members of the group that is not complete.
    fn live_open(&self) -> Range<u64> {
        self.tokens - self.tokens % GROUP_TOKENS..self.tokens
    }

    /// Window positions that a step writing `step` touches.
    fn window_reach(&self, step: &Range<u64>) -> Range<u64> {
        step.start.saturating_sub(self.window_tokens)..step.end
    }

    /// Open-group positions that a step writing `step` touches.
    fn open_reach(&self, step: &Range<u64>) -> Range<u64> {
        step.start - step.start % GROUP_TOKENS..step.end
    }
}
