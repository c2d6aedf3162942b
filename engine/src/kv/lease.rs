//! Whole pages that several sequences read.

use super::Page;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the pages of the prefix cache that no sequence reads.
#[derive(Debug, Clone, Default)]
pub(super) struct IdlePages(Arc<AtomicU64>);

impl IdlePages {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One page more that nobody reads, or one less.
    pub(super) fn add(&self, page: i64) {
        self.0.fetch_add(page as u64, Ordering::Relaxed);
    }
}

/// A page of the prefix cache that some sequences read. It stays in the cache while there is one.
#[derive(Debug)]
pub struct Lease {
    page: Arc<Page>,
    idle: IdlePages,
}

impl Lease {
    /// The first of an idle page.
    pub(super) fn new(page: Arc<Page>, idle: IdlePages) -> Self {
        idle.add(-1);
        Self { page, idle }
    }

    pub(super) fn page(&self) -> &Arc<Page> {
        &self.page
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.idle.add(1);
    }
}
