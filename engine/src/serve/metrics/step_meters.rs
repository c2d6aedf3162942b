//! What each step takes.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::buckets::{DRAFTS, ROWS, TOKEN_SECONDS};
use crate::serve::generator::Counts;

/// A histogram for each value of one label.
type SecondsByPhase = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;

/// Counted on the engine's thread, from what the engine counted before and after a step.
#[derive(Clone, Debug)]
pub(in crate::serve) struct StepMeters {
    prefill_seconds: Histogram,
    decode_seconds: Histogram,
    mixed_seconds: Histogram,
    rows: Histogram,
    verify_width: Histogram,
    eager_with_prompt: Counter,
    eager_not_captured: Counter,
    replayed_tokens: Counter,
}

impl StepMeters {
    /// Registers its metrics; `prompt_tokens` are of prompts, by where they come from.
    pub(super) fn new(
        registry: &mut Registry,
        prompt_tokens: &Family<[(&'static str, &'static str); 1], Counter>,
    ) -> Self {
        let seconds: SecondsByPhase =
            Family::new_with_constructor(|| Histogram::new(TOKEN_SECONDS));
        let eager = Family::<[(&str, &str); 1], Counter>::default();
        let (rows, verify_width) = (Histogram::new(ROWS), Histogram::new(DRAFTS));
        let help = "Time of a step that computes prompts, next tokens, or both";
        registry.register("v41_step_seconds", help, seconds.clone());
        registry.register("v41_step_tokens", "Rows of a step", rows.clone());
        let help = "Drafts of a request that a step verifies, the mean of the step";
        registry.register("v41_spec_verify_width", help, verify_width.clone());
        let help = "Steps in which nothing ran as captured, because they computed prompts or their \
                    shape was not captured";
        registry.register("v41_eager_steps", help, eager.clone());
        let phase = |phase| seconds.get_or_create_owned(&[("phase", phase)]);
        let why = |why| eager.get_or_create_owned(&[("why", why)]);
        Self {
            prefill_seconds: phase("prefill"),
            decode_seconds: phase("decode"),
            mixed_seconds: phase("mixed"),
            rows,
            verify_width,
            eager_with_prompt: why("prompt"),
            eager_not_captured: why("not_captured"),
            replayed_tokens: prompt_tokens.get_or_create_owned(&[("source", "replayed")]),
        }
    }

    /// Takes note of a step.
    pub(in crate::serve) fn note(&self, before: &Counts, after: &Counts, took: Duration) {
        self.replayed_tokens.inc_by(after.work.replayed_tokens - before.work.replayed_tokens);
        if after.work.steps == before.work.steps {
            return;
        }
        let rows = after.work.rows - before.work.rows;
        let prompt_rows = after.work.prompt_rows - before.work.prompt_rows;
        let seconds = match (prompt_rows, rows - prompt_rows) {
            (0, _) => &self.decode_seconds,
            (_, 0) => &self.prefill_seconds,
            _ => &self.mixed_seconds,
        };
        seconds.observe(took.as_secs_f64());
        self.rows.observe(rows as f64);
        let verified = after.work.verifications - before.work.verifications;
        if verified > 0 {
            let drafted = after.work.drafted_tokens - before.work.drafted_tokens;
            self.verify_width.observe(drafted as f64 / verified as f64);
        }
        match (after.replays == before.replays, prompt_rows) {
            (false, _) => {}
            (true, 0) => _ = self.eager_not_captured.inc(),
            (true, _) => _ = self.eager_with_prompt.inc(),
        }
    }
}
