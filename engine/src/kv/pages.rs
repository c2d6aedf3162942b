//! The cache pages of one sequence.

use super::rolling::{Rolling, address};
use super::{
    BlockId, Lease, OPEN_PAGE_TOKENS, OutOfPages, PAGE_TOKENS, Page, PagePools, Prefix,
    PrefixCache, PrefixHit, Snapshot, WINDOW_PAGE_TOKENS,
};
use std::ops::Range;
use std::sync::Arc;

/// Tokens of the largest compressed group. Groups do not overlap.
pub(super) const GROUP_TOKENS: u64 = 2;

/// The pages of a sequence and how far they are filled. Dropping it gives every page back.
///
/// All writing happens between [`SequencePages::begin`] and [`SequencePages::commit`]; what a
/// commit rolls back is as if it had never been begun. Pages that it shares with the prefix cache
/// are whole, and never written again.
// In this order, so that what every step asks lies side by side.
#[derive(Debug)]
#[repr(C)]
pub struct SequencePages {
    tokens: u64,
    window_tokens: u64,
    /// The first position with a window entry.
    window_from: u64,
    /// Whether the window before the last whole page stays as well, for the prefix cache.
    resumable: bool,
    window: Rolling<WINDOW_PAGE_TOKENS>,
    /// Ids of the compressed pages, as every row of every step wants them.
    table: Vec<i32>,
    open: Rolling<OPEN_PAGE_TOKENS>,
    compressed: Vec<Held>,
    /// Positions whose compressed entries the prefix cache had: they are not stored again.
    stored_tokens: u64,
    /// The window of a position that it has passed, for the prefix cache.
    kept: Vec<Arc<Page>>,
    pools: PagePools,
}

/// A page of compressed entries of a sequence.
#[derive(Debug)]
enum Held {
    /// Its own.
    Own(Arc<Page>),
    /// Of the prefix cache.
    Leased(Arc<Lease>),
}

impl Held {
    fn page(&self) -> &Arc<Page> {
        match self {
            Self::Own(page) => page,
            Self::Leased(lease) => lease.page(),
        }
    }
}

/// An open step of a sequence: positions that have pages but do not count yet.
#[derive(Debug)]
#[must_use = "a step that is begun is committed, with 0 tokens to undo it"]
pub struct Checkpoint {
    from: u64,
    tokens: u64,
    /// Pages of open groups that were held before, where a page of them begins.
    open_pages: usize,
}

impl SequencePages {
    /// No pages yet. `window_tokens` positions before the next one stay readable.
    pub fn new(pools: &PagePools, window_tokens: u64) -> Self {
        Self {
            pools: pools.clone(),
            window_tokens,
            resumable: false,
            tokens: 0,
            window_from: 0,
            stored_tokens: 0,
            kept: Vec::new(),
            compressed: Vec::new(),
            table: Vec::new(),
            window: Rolling::new(pools.window.clone()),
            open: Rolling::new(pools.open.clone()),
        }
    }

    /// Goes on where the prefix cache ends, from position 0 when it has nothing. What is computed may
    /// be shared with it: the window before the last page that ends before the last position stays
    /// readable too.
    pub fn resumed(pools: &PagePools, window_tokens: u64, hit: PrefixHit) -> Self {
        let mut pages = Self { resumable: true, ..Self::new(pools, window_tokens) };
        let PrefixHit { tokens, pages: compressed, windows, .. } = hit;
        let window = tokens.saturating_sub(window_tokens);
        pages.window_from = if windows.is_empty() { tokens } else { window };
        pages.window.extend(&(window..tokens), windows);
        pages.hold(compressed.into_iter().map(Held::Leased));
        pages.tokens = tokens;
        pages.stored_tokens = pages.compressed.len() as u64 * PAGE_TOKENS;
        pages
    }

    /// Shares whole page `at`, the next of `prefix` after block `before`, with the cache.
    pub fn share(
        &mut self,
        cache: &mut PrefixCache,
        before: Option<BlockId>,
        prefix: &Prefix<'_>,
        at: usize,
    ) -> BlockId {
        let page = Arc::clone(self.compressed[at].page());
        let (id, lease) = cache.insert(before, prefix, at, page);
        // Of an equal page that another sequence shared, where there is one.
        self.table[at] = lease.page().id() as i32;
        self.compressed[at] = Held::Leased(lease);
        id
    }

    /// The pages of the window before a position, for a sequence to go on there; none when some are
    /// out of reach.
    pub fn windows_before(&self, position: u64) -> Vec<Arc<Page>> {
        self.window.held(&(position.saturating_sub(self.window_tokens)..position))
    }

    /// Keeps the window before the next position, whatever follows.
    pub fn keep_windows(&mut self) {
        self.kept = self.windows_before(self.tokens);
    }

    /// Gives up what [`SequencePages::keep_windows`] kept.
    pub fn take_kept(&mut self) -> Vec<Arc<Page>> {
        std::mem::take(&mut self.kept)
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
        if tokens == 1 && !from.is_multiple_of(OPEN_PAGE_TOKENS) {
            // Every pool's page of the position before goes on.
            return Ok(Checkpoint { from, tokens, open_pages: 0 });
        }
        let open_pages = self.open.pages().len();
        let reach = from..from + tokens;
        let (windows, groups) = (self.window_reach(&reach), self.open_reach(&reach));
        let held = self.compressed.len() as u64;
        let wanted = reach.end.div_ceil(PAGE_TOKENS).saturating_sub(held);
        let rolling = (self.window.missing(&windows), self.open.missing(&groups));
        if (wanted, rolling) == (0, (0, 0)) {
            // Nothing is locked or made.
            return Ok(Checkpoint { from, tokens, open_pages });
        }
        // Each is dropped, and so given back, when a later one fails.
        let compressed = self.pools.compressed.take(wanted)?;
        let window = self.window.take(rolling.0)?;
        let open = self.open.take(rolling.1)?;
        self.hold(compressed.into_iter().map(Arc::new).map(Held::Own));
        self.window.extend(&windows, window);
        self.open.extend(&groups, open);
        Ok(Checkpoint { from, tokens, open_pages })
    }

    /// Keeps the first `kept` positions of a step and rolls the others back; then gives back every
    /// page that no later step can reach.
    ///
    /// # Panics
    /// When the checkpoint is not this sequence's open step, or holds fewer positions.
    #[expect(clippy::needless_pass_by_value, reason = "a checkpoint is committed once")]
    pub fn commit(&mut self, step: Checkpoint, kept: u64) {
        let Checkpoint { from, tokens, open_pages } = step;
        assert_eq!(from, self.tokens, "a step is committed to the sequence it was begun on");
        assert!(kept <= tokens, "a commit keeps no more than was begun");
        self.tokens = from + kept;
        let end = self.tokens..self.tokens;
        let windows = self.window_reach(&end);
        if (kept, tokens) == (1, 1) && !self.tokens.is_multiple_of(OPEN_PAGE_TOKENS) {
            // Nothing is rolled back, and of the pages only a window's can be out of reach now.
            self.window.leave_behind(&windows);
            return;
        }
        let pages = self.tokens.max(self.stored_tokens).div_ceil(PAGE_TOKENS);
        self.compressed.truncate(pages as usize);
        self.table.truncate(pages as usize);
        self.window.keep(&windows);
        match self.tokens % OPEN_PAGE_TOKENS {
            0 if kept == 0 => self.open.truncate(open_pages),
            // All groups are whole: the next ones may have the page.
            0 => self.open.turn_over(self.tokens),
            // The page of the last positions too, though their group may be whole.
            last => self.open.keep(&(self.tokens - last..self.tokens)),
        }
    }

    /// Address of a position's window entry, -1 when it is out of reach.
    pub fn window_address(&self, position: u64) -> i32 {
        self.window.address(position)
    }

    /// Addresses of the window entries of neighbouring positions, less those in front that are out
    /// of reach.
    pub fn window_addresses(&self, positions: &Range<u64>) -> &[i32] {
        self.window.addresses(positions)
    }

    /// Address of a position's open-group row, -1 when it is out of reach.
    pub fn open_address(&self, position: u64) -> i32 {
        self.open.address(position)
    }

    /// Address where the compressed entry that `position` completes is stored, -1 when it completes
    /// none or when the entry is there already.
    #[inline]
    pub fn store_address(&self, ratio: u64, position: u64) -> i32 {
        let completes = (position + 1).is_multiple_of(ratio) && position >= self.stored_tokens;
        if completes { self.entry_address(ratio, position / ratio) } else { -1 }
    }

    /// Address of a compressed entry of `ratio` tokens, -1 when it has no page.
    #[inline]
    pub fn entry_address(&self, ratio: u64, entry: u64) -> i32 {
        let entries = PAGE_TOKENS / ratio;
        let page = self.table.get((entry / entries) as usize);
        page.map_or(-1, |page| address(*page, entries, entry % entries))
    }

    /// The page table of the compressed caches.
    pub fn table(&self) -> &[i32] {
        &self.table
    }

    fn hold(&mut self, pages: impl Iterator<Item = Held>) {
        for held in pages {
            // Ids are 31-bit by the pool's construction.
            self.table.push(held.page().id() as i32);
            self.compressed.push(held);
        }
    }

    /// Every address that a later step may read.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self, self.live_window(), self.live_open())
    }

    /// Pages of compressed entries.
    pub fn compressed_pages(&self) -> impl Iterator<Item = &Page> {
        self.compressed.iter().map(|held| &**held.page())
    }

    /// Pages of window entries.
    pub fn window_pages(&self) -> impl Iterator<Item = &Page> {
        self.window.pages().chain(self.kept.iter().map(|page| &**page))
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
        let first = match self.resumable {
            true => step.start.saturating_sub(1) / PAGE_TOKENS * PAGE_TOKENS,
            false => step.start,
        };
        first.saturating_sub(self.window_tokens).max(self.window_from)..step.end
    }

    /// Open-group positions that a step writing `step` touches.
    fn open_reach(&self, step: &Range<u64>) -> Range<u64> {
        step.start - step.start % GROUP_TOKENS..step.end
    }
}
