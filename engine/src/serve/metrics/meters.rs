//! All that is counted, and its page.

use std::time::Duration;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::buckets::WAITS_SECONDS;
use super::tally::TokenKind;
use super::{EnginePage, JobMeters, StepMeters};
use crate::serve::options::{KernelUse, MemoryUse};

/// A label and its value.
type Label = (&'static str, &'static str);

/// Facts by three labels.
type Facts = Family<[(&'static str, String); 3], Gauge>;

/// Counters and histograms of one server.
#[derive(Debug)]
pub(in crate::serve) struct Meters {
    registry: Registry,
    replies: Family<[Label; 2], Counter>,
    rejected: Family<[Label; 1], Counter>,
    cancelled: Counter,
    reasoning_tokens: Counter,
    content_tokens: Counter,
    tool_tokens: Counter,
    e2e: Histogram,
    build: Facts,
    memory: Facts,
    kernels: Facts,
    rest_checks: Counter,
    jobs: JobMeters,
    steps: StepMeters,
}

impl Meters {
    /// All zero; `engine` tells what the engine counts by itself.
    pub(in crate::serve) fn new(engine: EnginePage) -> Self {
        let mut registry = Registry::default();
        let replies = Family::<[Label; 2], Counter>::default();
        let rejected = Family::<[Label; 1], Counter>::default();
        let (cancelled, e2e) = (Counter::default(), Histogram::new(WAITS_SECONDS));
        let output_tokens = Family::<[Label; 1], Counter>::default();
        let prompt_tokens = Family::<[Label; 1], Counter>::default();
        let (build, memory, kernels) = (Facts::default(), Facts::default(), Facts::default());
        let rest_checks = Counter::default();
        let help = "Replies that ended, by how; several to one request count each";
        registry.register("v41_requests", help, replies.clone());
        let help = "Requests that were refused, by the error's code";
        registry.register("v41_requests_rejected", help, rejected.clone());
        let help = "Replies whose client hung up before their end";
        registry.register("v41_requests_cancelled", help, cancelled.clone());
        let help = "From letting a request in to a reply's end";
        registry.register("v41_e2e_seconds", help, e2e.clone());
        let help = "Tokens of replies, markup included, the stop token not";
        registry.register("v41_output_tokens", help, output_tokens.clone());
        let help = "Tokens of prompts: computed, held by the prefix cache, or computed again, with what followed \
                    them, after others took their pages";
        registry.register("v41_prompt_tokens", help, prompt_tokens.clone());
        registry.register("v41_build_info", "What runs", build.clone());
        let help = "Memory that devices hold, by where it lies and what for";
        registry.register("v41_memory_bytes", help, memory.clone());
        let help = "Rows that some launches of an operator take";
        registry.register("v41_kernel_info", help, kernels.clone());
        let help = "Times that the idle engine found all pages free or held once";
        registry.register("v41_rest_checks", help, rest_checks.clone());
        let jobs = JobMeters::new(&mut registry, &prompt_tokens);
        let steps = StepMeters::new(&mut registry, &prompt_tokens);
        registry.register_collector(Box::new(engine));
        let kind = |kind| output_tokens.get_or_create_owned(&[("kind", kind)]);
        Self {
            registry,
            replies,
            rejected,
            cancelled,
            reasoning_tokens: kind("reasoning"),
            content_tokens: kind("content"),
            tool_tokens: kind("tool"),
            e2e,
            build,
            memory,
            kernels,
            rest_checks,
            jobs,
            steps,
        }
    }

    /// Says what is served.
    pub(in crate::serve) fn name_build(&self, checkpoint: &str, numerics: &str) {
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("checkpoint", checkpoint.to_owned()),
            ("numerics", numerics.to_owned()),
        ];
        self.build.get_or_create(&labels).set(1);
    }

    /// Says what devices hold.
    pub(in crate::serve) fn tell_memory(&self, memory: &[MemoryUse]) {
        for MemoryUse { device, place, purpose, bytes } in memory {
            let place = ("place", (*place).to_owned());
            let labels = [("device", device.clone()), place, ("purpose", purpose.clone())];
            self.memory.get_or_create(&labels).set(i64::try_from(*bytes).unwrap_or(i64::MAX));
        }
    }

    /// Says what runs the model's operators.
    pub(in crate::serve) fn tell_kernels(&self, kernels: &[KernelUse]) {
        for KernelUse { op, row, rank } in kernels {
            let rank = ("rank", rank.to_string());
            let labels = [("op", (*op).to_owned()), ("row", (*row).to_owned()), rank];
            self.kernels.get_or_create(&labels).set(1);
        }
    }

    /// Counts a look at the accounts of the idle engine.
    pub(in crate::serve) fn checked_at_rest(&self) {
        self.rest_checks.inc();
    }

    /// Counts a reply that ended.
    pub(super) fn reply(&self, endpoint: &'static str, finish: &'static str, took: Duration) {
        self.replies.get_or_create(&[("endpoint", endpoint), ("finish", finish)]).inc();
        self.e2e.observe(took.as_secs_f64());
    }

    /// Counts a request that was refused.
    pub(in crate::serve) fn rejected(&self, reason: &'static str) {
        self.rejected.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a reply that nobody waits for.
    pub(super) fn cancelled(&self) {
        self.cancelled.inc();
    }

    /// The counter of a kind of tokens.
    pub(super) fn output_tokens(&self, kind: TokenKind) -> &Counter {
        match kind {
            TokenKind::Reasoning => &self.reasoning_tokens,
            TokenKind::Content => &self.content_tokens,
            TokenKind::Tool => &self.tool_tokens,
        }
    }

    /// What the engine's thread notes of jobs.
    pub(in crate::serve) fn jobs(&self) -> &JobMeters {
        &self.jobs
    }

    /// What it notes of steps.
    pub(in crate::serve) fn steps(&self) -> &StepMeters {
        &self.steps
    }

    /// The page.
    pub(super) fn page(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}
