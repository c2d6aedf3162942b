//! What operators watch, in Prometheus' text form at `/metrics`.
//!
//! Counts of requests and replies are kept in [`Meters`] where they happen: by handlers, by whoever
//! reads a reply, and by the engine's thread, which bumps counters that were made before and
//! allocates nothing. What the engine counts by itself is copied after each step and read when
//! somebody asks.

mod buckets;
mod engine_page;
mod job_clock;
mod meters;
mod page;
mod step_meters;
mod tally;

pub(super) use engine_page::EnginePage;
pub(super) use job_clock::{JobClock, JobMeters};
pub(super) use meters::Meters;
pub(super) use page::metrics;
pub(super) use step_meters::StepMeters;
pub(super) use tally::{Tally, TokenKind};
