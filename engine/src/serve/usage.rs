//! Counts of a reply.

use serde_json::{Value, json};

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Usage {
    /// Tokens of the prompt.
    pub(super) prompt_tokens: u64,
    /// Of these, tokens that a cache held.
    pub(super) cached_tokens: u64,
    /// Tokens generated, reasoning and markup included, the stop token not.
    pub(super) completion_tokens: u64,
    /// Of these, tokens of the reasoning.
    pub(super) reasoning_tokens: u64,
    /// Windows behind cached prefixes are computed within a bound.
    pub(super) bounded_replay: bool,
    /// Drafts among the generated tokens.
    pub(super) accepted_drafts: u64,
    /// Drafts in whose place other tokens were generated, and those behind them.
    pub(super) rejected_drafts: u64,
}

impl Usage {
    /// In OpenAI's shape.
    pub(super) fn json(self) -> Value {
        let mut usage = json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": { "cached_tokens": self.cached_tokens },
            "completion_tokens_details": {
                "reasoning_tokens": self.reasoning_tokens,
                "accepted_prediction_tokens": self.accepted_drafts,
                "rejected_prediction_tokens": self.rejected_drafts,
            },
        });
        self.note_replay(&mut usage);
        usage
    }

    /// Tells in any protocol's usage when an answer may differ from what it is without a cache.
    pub(super) fn note_replay(self, usage: &mut Value) {
        if self.bounded_replay {
            usage["prefix_cache"] = "bounded".into();
        }
    }
}
