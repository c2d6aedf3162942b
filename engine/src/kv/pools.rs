//! The three pools and how large they must be.

use super::{OutOfPages, PagePool, PrefixCache, SequencePages};
use crate::kv::Page;

/// Token positions of a page of the compressed caches.
pub const PAGE_TOKENS: u64 = 64;
/// Token positions of a page of the rolling window caches.
pub const WINDOW_PAGE_TOKENS: u64 = 32;
/// Token positions of a page of the rolling caches of open groups.
pub const OPEN_PAGE_TOKENS: u64 = 8;

/// Pages of each pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPages {
    /// Of the compressed caches, [`PAGE_TOKENS`] positions each.
    pub compressed: u64,
    /// Of the windows, [`WINDOW_PAGE_TOKENS`] positions each.
    pub window: u64,
    /// Of the open groups, [`OPEN_PAGE_TOKENS`] positions each.
    pub open: u64,
}

impl PoolPages {
    /// Pools whose rolling parts can never run out, so that the compressed pages alone decide what
    /// fits: every one of `sequences` holds its window, a step adds at most `step_tokens` rows in
    /// all, and drafts need `scratch_tokens` entries of the window pool.
    pub fn for_steps(
        compressed: u64,
        sequences: u64,
        window_tokens: u64,
        step_tokens: u64,
        scratch_tokens: u64,
    ) -> Self {
        // `n` neighbouring positions touch at most n / page + 2 pages.
        let window = sequences * (window_tokens.div_ceil(WINDOW_PAGE_TOKENS) + 2)
            + step_tokens.div_ceil(WINDOW_PAGE_TOKENS)
            + scratch_tokens.div_ceil(WINDOW_PAGE_TOKENS);
        let open = sequences * 2 + step_tokens.div_ceil(OPEN_PAGE_TOKENS);
        Self { compressed, window, open }
    }

    /// With windows for a prefix cache as well: of all its resume points, of the page that each
    /// sequence keeps reaching back to, and of the one point that each may be about to make.
    #[must_use]
    pub fn with_resume_points(self, points: u64, sequences: u64, window_tokens: u64) -> Self {
        let pages = window_tokens.div_ceil(WINDOW_PAGE_TOKENS) + 1;
        let further = PAGE_TOKENS / WINDOW_PAGE_TOKENS;
        Self { window: self.window + points * pages + sequences * (further + pages), ..self }
    }
}

/// The pools. Cloning shares them.
#[derive(Debug, Clone)]
pub struct PagePools {
    /// Compressed entries and index keys.
    pub compressed: PagePool,
    /// Window entries.
    pub window: PagePool,
    /// Rows of open groups.
    pub open: PagePool,
}

impl PagePools {
    /// All pages free.
    pub fn new(pages: PoolPages) -> Self {
        Self {
            compressed: PagePool::new("compressed cache", pages.compressed),
            window: PagePool::new("window cache", pages.window),
            open: PagePool::new("open groups", pages.open),
        }
    }

    /// Pages of each pool that nobody owns.
    pub fn free(&self) -> PoolPages {
        PoolPages {
            compressed: self.compressed.free_pages(),
            window: self.window.free_pages(),
            open: self.open.free_pages(),
        }
    }

    /// Window pages that belong to no sequence, for the entries of drafts.
    ///
    /// # Errors
    /// [`OutOfPages`] when the pool has fewer.
    pub fn scratch(&self, tokens: u64) -> Result<Vec<Page>, OutOfPages> {
        self.window.take(tokens.div_ceil(WINDOW_PAGE_TOKENS))
    }

    /// Whether every page is free, held by `sequences` or `cache` or, in the window pool, one of
    /// `scratch`, and that once only.
    ///
    /// # Errors
    /// Names the pool and the first page that is not.
    pub fn check<'a>(
        &self,
        sequences: impl Iterator<Item = &'a SequencePages> + Clone,
        scratch: &'a [Page],
        cache: &'a PrefixCache,
    ) -> Result<(), String> {
        let compressed = sequences.clone().flat_map(SequencePages::compressed_pages);
        self.compressed.check(compressed.chain(cache.pages()))?;
        let windows = sequences.clone().flat_map(SequencePages::window_pages);
        self.window.check(windows.chain(scratch).chain(cache.window_pages()))?;
        cache.check()?;
        self.open.check(sequences.flat_map(SequencePages::open_pages))
    }
}
