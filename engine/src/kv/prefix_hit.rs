//! What the prefix cache has of a prefix.

use super::{BlockId, Lease, PAGE_TOKENS, Page};
use std::sync::Arc;

/// What a prefix finds. The pages stay in the cache as long as this, or whoever takes them over,
/// holds them.
#[derive(Debug, Default)]
pub struct PrefixHit {
    /// Tokens up to the last resume point: where to go on, unless computing the windows anew from
    /// an earlier position is less.
    pub tokens: u64,
    /// Tokens whose compressed entries the cache has, with or without a resume point.
    pub matched_tokens: u64,
    /// Pages of compressed entries of `matched_tokens`.
    pub(super) pages: Vec<Arc<Lease>>,
    /// Window pages before `tokens`.
    pub(super) windows: Vec<Arc<Page>>,
    /// The blocks of `matched_tokens`.
    pub(crate) chain: Vec<BlockId>,
}

impl PrefixHit {
    /// Keeps what there is up to the last resume point.
    #[must_use]
    pub fn from_resume_point(mut self) -> Self {
        let pages = (self.tokens / PAGE_TOKENS) as usize;
        self.pages.truncate(pages);
        self.chain.truncate(pages);
        self
    }

    /// Goes on from an earlier position, a page's first, without a window: what is matched is not
    /// stored again, and its windows come out of computing them.
    #[must_use]
    pub fn from_position(self, tokens: u64) -> Self {
        Self { tokens, windows: Vec::new(), ..self }
    }
}
