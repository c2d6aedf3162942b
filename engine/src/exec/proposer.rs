//! Who proposes drafts.

use super::{Drafter, RequestId};
use crate::error::Result;
use crate::kv::{Page, SequencePages};

/// A request that drafts are wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Drafting<'a> {
    /// The request.
    pub request: RequestId,
    /// Its tokens; the last one is sampled, not yet computed.
    pub tokens: &'a [u32],
    /// Its pages; they end right before the last token.
    pub pages: &'a SequencePages,
    /// How drafts that are drawn are drawn.
    pub drafter: Drafter,
    /// Drafts wanted at most, at least one.
    pub wanted: u64,
}

/// Proposes next tokens. Whatever it proposes, answers keep their law, and greedy ones their tokens.
pub trait Proposer<F>: Send {
    /// A block for each request in order, of any length; what is more than is wanted is cut off.
    ///
    /// # Errors
    /// When the device fails.
    fn propose(&mut self, model: &mut F, drafting: &[Drafting<'_>]) -> Result<Vec<Vec<u32>>>;

    /// A request is over.
    fn forget(&mut self, request: RequestId) {
        let _ = request;
    }

    /// Window pages that it writes to and no sequence owns.
    fn scratch(&self) -> &[Page] {
        &[]
    }
}
