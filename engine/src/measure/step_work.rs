//! What one step computes.

use crate::exec::{DraftSource, EngineOptions, Graphs, Replay};
use crate::kv::PAGE_TOKENS;

/// The same number of rows at the end of each of some sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepWork {
    /// Sequences.
    pub sequences: u64,
    /// Rows of each.
    pub rows: u64,
    /// Tokens of each, its rows of the step included.
    pub context_tokens: u64,
    /// Whether logits are wanted of every row, as in decoding, or of each sequence's last alone.
    pub every_row: bool,
}

impl StepWork {
    /// `rows` rows each of `sequences` sequences that have `context_tokens` then.
    pub fn decode(sequences: u64, rows: u64, context_tokens: u64) -> Self {
        Self { sequences, rows, context_tokens, every_row: true }
    }

    /// At most `tokens` prompt rows: the last of one prompt of `context_tokens`, or as many whole
    /// prompts as they make up.
    pub fn prefill(tokens: u64, context_tokens: u64) -> Self {
        let rows = tokens.min(context_tokens);
        Self { sequences: tokens / rows.max(1), rows, context_tokens, every_row: false }
    }

    /// Rows in all.
    pub fn tokens(&self) -> u64 {
        self.sequences * self.rows
    }

    /// Rows whose logits are computed.
    pub fn outputs(&self) -> u64 {
        if self.every_row { self.tokens() } else { self.sequences }
    }

    /// Limits of an engine that can run each of `all`.
    pub fn options(all: &[Self]) -> EngineOptions {
        let most = |of: &dyn Fn(&Self) -> u64| all.iter().map(of).max().unwrap_or(1);
        let outputs = most(&Self::outputs);
        let step_tokens = most(&Self::tokens).max(outputs);
        EngineOptions {
            sequences: outputs,
            step_tokens,
            chunk_tokens: step_tokens,
            step_us: None,
            resume_points: 0,
            replay: Replay::Exact,
            pages: most(&|work| work.sequences * work.context_tokens.div_ceil(PAGE_TOKENS)),
            context_tokens: most(&|work| work.context_tokens),
            draft_tokens: 0,
            drafts: DraftSource::Dspark,
            least_survival: 0.0,
            skip_upper_half: false,
            step_sizes: Vec::new(),
            pictures: 0,
            graphs: Graphs::Full,
            biases: 1,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefill_is_the_end_of_one_prompt_or_whole_short_ones() {
        let long = StepWork::prefill(8192, 131_072);
        assert_eq!((long.sequences, long.rows, long.outputs()), (1, 8192, 1));
        let short = StepWork::prefill(8192, 4096);
        assert_eq!((short.sequences, short.rows, short.tokens()), (2, 4096, 8192));
        let options = StepWork::options(&[long, short, StepWork::decode(128, 1, 131_072)]);
        assert_eq!((options.sequences, options.step_tokens), (128, 8192));
        assert_eq!(options.pages, 128 * 2048);
    }
}
