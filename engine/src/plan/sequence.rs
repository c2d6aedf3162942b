//! What one sequence holds in the paged caches.

use crate::kv::{OPEN_PAGE_TOKENS, PAGE_TOKENS, WINDOW_PAGE_TOKENS};
use crate::model::v41::ledger::CacheLedger;

/// Page sizes and counts of one sequence on one rank. There is one KV head, so every rank of a
/// group holds a whole copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePages {
    /// Bytes of a compressed page.
    pub compressed_page_bytes: u64,
    /// Bytes of a window page.
    pub window_page_bytes: u64,
    /// Window pages of a sequence between steps, at the worst alignment.
    pub window_pages: u64,
    /// Bytes of a page of open-group rows.
    pub group_page_bytes: u64,
    /// Such pages of a sequence.
    pub group_pages: u64,
}

impl SequencePages {
    /// The pages of a sequence that verifies `draft_tokens` drafts a step: the window before the
    /// first verified token and the verified tokens must lie side by side.
    pub fn new(caches: &CacheLedger, draft_tokens: u64) -> Self {
        let window_entries = WINDOW_PAGE_TOKENS * caches.window_layers;
        Self {
            compressed_page_bytes: caches.compressed_bytes(PAGE_TOKENS),
            window_page_bytes: window_entries * caches.window_entry_bytes,
            window_pages: pages(caches.window_tokens + draft_tokens, WINDOW_PAGE_TOKENS),
            group_page_bytes: OPEN_PAGE_TOKENS * caches.open_group_bytes * caches.gated_owners,
            group_pages: pages(draft_tokens + 2, OPEN_PAGE_TOKENS),
        }
    }

    /// Bytes of a sequence that do not grow with its length.
    pub fn fixed_bytes(&self) -> u64 {
        self.window_pages * self.window_page_bytes + self.group_pages * self.group_page_bytes
    }

    /// Compressed bytes of a sequence of `tokens`.
    pub fn compressed_bytes(&self, tokens: u64) -> u64 {
        tokens.div_ceil(PAGE_TOKENS) * self.compressed_page_bytes
    }

    /// Tokens whose compressed pages fit in `bytes`.
    pub fn tokens_in(&self, bytes: u64) -> u64 {
        match self.compressed_page_bytes {
            0 => u64::MAX,
            page => bytes / page * PAGE_TOKENS,
        }
    }
}

/// Pages that `positions` consecutive positions can touch.
fn pages(positions: u64, page: u64) -> u64 {
    (positions - 1).div_ceil(page) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::v41::Config;

    #[test]
    fn the_release_takes_whole_pages() {
        let caches = CacheLedger::of(&Config::named("v4.1-flash").unwrap());
        let pages = SequencePages::new(&caches, 5);
        assert_eq!(pages.compressed_page_bytes, 64 * 890);
        assert_eq!(pages.compressed_bytes(1 << 20), 890 << 20);
        assert_eq!(pages.compressed_bytes(65), 128 * 890);
        assert_eq!(pages.tokens_in(3 * 64 * 890 - 1), 128);
        // 133 positions touch six pages when the first starts at a page's last position.
        assert_eq!((pages.window_pages, pages.group_pages), (6, 2));
        assert_eq!(pages.window_page_bytes, 32 * 43 * 528);
        assert_eq!(pages.group_page_bytes, 8 * 4096 * 3);
    }
}
