//! Counts in Anthropic's shape.

use serde_json::{Value, json};

use crate::serve::usage::Usage;

/// Tokens that a cache held are not among the input tokens here.
pub(super) fn json(usage: Usage) -> Value {
    let mut body = json!({
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    });
    usage.note_replay(&mut body);
    body
}
