//! What a step reports.

use super::{LogProbs, RequestId};

/// Something that happened to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The request.
    pub request: RequestId,
    /// What happened.
    pub what: What,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Its first computation begins.
    Started {
        /// Tokens of the prompt that the prefix cache held.
        cached_tokens: u64,
    },
    /// A token of the answer.
    Token {
        /// Its id.
        id: u32,
        /// Its log-probabilities, when asked for.
        log_probs: Option<LogProbs>,
        /// The drafts that it settles.
        drafts: DraftCounts,
    },
    /// The answer is over; nothing follows and the cache is given back.
    Finished {
        /// Why.
        reason: FinishReason,
        /// What it took.
        usage: Usage,
    },
}

/// Drafts that a token settles: itself, or those in whose place it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DraftCounts {
    /// Drafts that stand.
    pub accepted: u32,
    /// Drafts that were computed in vain.
    pub rejected: u32,
}

/// Why an answer is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// This stop id was generated.
    Stop(u32),
    /// The token limit, or the room there was, is used up.
    Length,
    /// The caller ended it.
    Cancelled,
    /// Its logits were no numbers.
    NotANumber,
    /// The form that it was held to could not be followed further.
    FormLost,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the prompt.
    pub prompt_tokens: u64,
    /// Of these, tokens that the prefix cache held when the request first started.
    pub cached_tokens: u64,
    /// Generated, a stop id included.
    pub generated_tokens: u64,
    /// Drafts that were verified, up to the answer's end.
    pub drafted_tokens: u64,
    /// Drafts among the generated tokens.
    pub accepted_tokens: u64,
    /// Times the request was set back and computed again for want of pages.
    pub restarts: u64,
}
