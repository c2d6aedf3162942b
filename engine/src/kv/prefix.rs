//! What a sequence of tokens is to the prefix cache.

use super::PAGE_TOKENS;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A picture in a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixPicture {
    /// Positions of its span.
    pub positions: Range<u64>,
    /// Digest of all that the vision tower reads.
    pub digest: [u8; 32],
}

/// Tokens from position 0, and whatever else decides what caches hold after them.
#[derive(Debug, Clone, Copy)]
pub struct Prefix<'a> {
    /// Token ids.
    pub tokens: &'a [u32],
    /// Pictures in order.
    pub pictures: &'a [PrefixPicture],
    /// Only prefixes of equal salt share pages.
    pub salt: &'a str,
}

/// One page of a prefix. Two prefixes of equal blocks leave the same bytes in the caches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct PrefixBlock {
    tokens: Vec<u32>,
    /// Pictures that the page has a part of: where they begin and end, from the page's first
    /// position, and their digests.
    pictures: Vec<(i64, i64, [u8; 32])>,
    /// Of the first page; the others come after it.
    salt: Option<String>,
}

impl PrefixBlock {
    /// Whether it is a whole page.
    pub(super) fn is_whole(&self) -> bool {
        self.tokens.len() as u64 == PAGE_TOKENS
    }
}

impl Prefix<'_> {
    /// Whole pages.
    pub(super) fn blocks(&self) -> usize {
        self.tokens.len() / PAGE_TOKENS as usize
    }

    /// A whole page.
    pub(super) fn block(&self, at: usize) -> PrefixBlock {
        let start = at as u64 * PAGE_TOKENS;
        let end = start + PAGE_TOKENS;
        let within = self
            .pictures
            .iter()
            .filter(|picture| picture.positions.start < end && start < picture.positions.end);
        let from_start = |position: u64| position as i64 - start as i64;
        PrefixBlock {
            tokens: self.tokens[start as usize..end as usize].to_vec(),
            pictures: within
                .map(|picture| {
                    let Range { start, end } = picture.positions;
                    (from_start(start), from_start(end), picture.digest)
                })
                .collect(),
            salt: (at == 0).then(|| self.salt.to_owned()),
        }
    }
}
