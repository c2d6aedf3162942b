//! When what happened to a job, as the engine's thread sees it.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::buckets::{TOKEN_SECONDS, WAITS_SECONDS};
use crate::serve::job::Update;

/// What the updates of all jobs add up to.
#[derive(Clone, Debug)]
pub(in crate::serve) struct JobMeters {
    ttft: Histogram,
    itl: Histogram,
    tpot: Histogram,
    queue: Histogram,
    prefill: Histogram,
    decode: Histogram,
    computed_tokens: Counter,
    cached_tokens: Counter,
}

/// Times of one job.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct JobClock {
    /// When its request was let in.
    admitted: Instant,
    /// When the engine got it, then when its prefill began.
    began: Instant,
    prompt_tokens: u64,
    /// When its first tokens came, and how many.
    first: Option<(Instant, u64)>,
    /// When the last tokens came.
    last: Instant,
    tokens: u64,
}

impl JobMeters {
    /// Registers its metrics; `prompt_tokens` are of prompts, by where they come from.
    pub(super) fn new(
        registry: &mut Registry,
        prompt_tokens: &Family<[(&'static str, &'static str); 1], Counter>,
    ) -> Self {
        let mut seconds = |name: &str, help: &str, bounds: &[f64]| {
            let histogram = Histogram::new(bounds.iter().copied());
            registry.register(format!("v41_{name}_seconds"), help, histogram.clone());
            histogram
        };
        let source = |source| prompt_tokens.get_or_create_owned(&[("source", source)]);
        Self {
            ttft: seconds("ttft", "From letting a request in to its first token", &WAITS_SECONDS),
            itl: seconds("itl", "Between a reply's steps with tokens", &TOKEN_SECONDS),
            tpot: seconds("tpot", "A reply's mean time per token behind the first", &TOKEN_SECONDS),
            queue: seconds("queue", "From the engine's queue to the prefill", &WAITS_SECONDS),
            prefill: seconds("prefill", "From there to the first token", &WAITS_SECONDS),
            decode: seconds("decode", "From the first token to the last", &WAITS_SECONDS),
            computed_tokens: source("computed"),
            cached_tokens: source("cached"),
        }
    }
}

impl JobClock {
    /// Of a job whose request was let in at `admitted`, and that the engine gets `now`.
    pub(in crate::serve) fn new(admitted: Instant, now: Instant, prompt_tokens: u64) -> Self {
        Self { admitted, began: now, prompt_tokens, first: None, last: now, tokens: 0 }
    }

    /// Takes note of what happened to the job.
    pub(in crate::serve) fn note(&mut self, update: &Update, now: Instant, meters: &JobMeters) {
        let seconds = |from: Instant| now.saturating_duration_since(from).as_secs_f64();
        match update {
            Update::Accepted => {}
            Update::Started { cached_tokens } => {
                meters.queue.observe(seconds(self.began));
                self.began = now;
                meters.cached_tokens.inc_by(*cached_tokens);
                meters.computed_tokens.inc_by(self.prompt_tokens.saturating_sub(*cached_tokens));
            }
            Update::Tokens(tokens) => {
                self.tokens += tokens.len() as u64;
                if self.first.is_none() {
                    self.first = Some((now, self.tokens));
                    meters.prefill.observe(seconds(self.began));
                    meters.ttft.observe(seconds(self.admitted));
                } else {
                    meters.itl.observe(seconds(self.last));
                }
                self.last = now;
            }
            Update::Ended(_) | Update::Failed(_) => self.end(meters),
        }
    }

    /// Takes note that it is over, or that nobody wants more of it.
    pub(in crate::serve) fn end(&self, meters: &JobMeters) {
        let Some((first, first_tokens)) = self.first else { return };
        let seconds = self.last.saturating_duration_since(first).as_secs_f64();
        meters.decode.observe(seconds);
        if self.tokens > first_tokens {
            meters.tpot.observe(seconds / (self.tokens - first_tokens) as f64);
        }
    }
}
