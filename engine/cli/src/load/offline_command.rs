//! `tandem bench throughput` and `tandem bench latency`: the engine under load without a server.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tandem_engine::{Error, Result};

use super::command::{Saved, heading, line};
use super::offline::Work;
use super::summary::{Promise, Summary};
use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::ready::{self, Drafts, ModelEngine, Pictures, Ready};

/// What every request is made of.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Tokens of each prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) input_len: u64,
    /// Tokens of each answer
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) output_len: u64,
    /// Tokens that all prompts share at their beginning, of their input
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub(super) prefix_len: u64,
    /// Seed of the prompts
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(super) bench_seed: u64,
}

impl Shape {
    /// Requests of this shape for a model that is loaded.
    ///
    /// # Errors
    /// Requests that are longer than a sequence may be.
    pub(super) fn work(&self, ready: &Ready, requests: usize, at_once: usize) -> Result<Work> {
        let (tokens, room) =
            (self.input_len.saturating_add(self.output_len), ready.engine.capacity_tokens());
        if tokens > room {
            let problem = format!("{tokens} tokens in all, but a sequence has {room}; give fewer");
            return Err(Error::Argument {
                argument: "--input-len and --output-len".into(),
                problem,
            });
        }
        Ok(Work {
            requests,
            at_once,
            prompt_tokens: self.input_len,
            shared_tokens: self.prefix_len.min(self.input_len),
            output_tokens: self.output_len,
            vocabulary: ready.source.config.vocab_size as u64,
            seed: self.bench_seed,
        })
    }
}

/// Loads the model for so many sequences at once.
///
/// # Errors
/// As every command that loads it.
pub(super) fn load(common: &Common, limits: &Limits, sequences: u64) -> Result<Ready> {
    let work =
        ready::Work { sequences, drafts: Drafts::WherePaying, pictures: Pictures::No, alike: true };
    Ready::load(common, limits, work)
}

/// How many tokens a second the engine gives, however long each request takes.
#[derive(Args, Debug)]
pub(crate) struct Throughput {
    /// Requests
    #[arg(long, value_name = "REQUESTS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    num_prompts: u32,
    /// Sequences that run at once
    #[arg(long, value_name = "SEQUENCES", default_value_t = 8)]
    max_num_seqs: u64,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    saved: Saved,
    #[command(flatten)]
    limits: Limits,
}

/// How long a batch takes from its beginning to its end.
#[derive(Args, Debug)]
pub(crate) struct Latency {
    /// Requests that begin together: one run for each of a list
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1, 2, 4, 8],
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch_size: Vec<u16>,
    /// Batches of a run
    #[arg(long, value_name = "TIMES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    num_iters: u32,
    /// Batches before each run that do not count
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    num_iters_warmup: u32,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    saved: Saved,
    #[command(flatten)]
    limits: Limits,
}

/// Prints a line for the run.
///
/// # Errors
/// As every command that loads a model, and files that cannot be written.
pub(crate) fn throughput(common: &Common, options: &Throughput) -> Result<ExitCode> {
    let mut ready = load(common, &options.limits, options.max_num_seqs)?;
    let requests = options.num_prompts as usize;
    let work = options.shape.work(&ready, requests, requests)?;
    warm_up(&mut ready.engine, &work)?;
    let summary = Summary::new(&work.run(&mut ready.engine)?, &Promise::default());
    let runs = [(format!("{requests} requests"), f64::from(options.num_prompts), summary)];
    finish(&options.saved, "throughput", &options.shape, options.max_num_seqs, &runs)
}

/// Prints a line for every size of batch.
///
/// # Errors
/// As [`throughput`].
pub(crate) fn latency(common: &Common, options: &Latency) -> Result<ExitCode> {
    let most = options.batch_size.iter().copied().max().unwrap_or(1);
    let mut ready = load(common, &options.limits, most.into())?;
    let mut runs = vec![];
    for &size in &options.batch_size {
        let work = options.shape.work(&ready, size.into(), size.into())?;
        // Each batch has other prompts, none of which the prefix cache knows.
        let mut seed = work.seed.wrapping_add(u64::from(size) << 32);
        let mut batch = |engine: &mut ModelEngine| {
            seed = seed.wrapping_add(1);
            Work { seed, ..work }.run(engine)
        };
        for _ in 0..options.num_iters_warmup {
            batch(&mut ready.engine)?;
        }
        let (mut timelines, mut offset) = (vec![], 0.0);
        for _ in 0..options.num_iters {
            let mut these = batch(&mut ready.engine)?;
            these.iter_mut().for_each(|timeline| timeline.shift(offset));
            offset = these.iter().map(|timeline| timeline.end).fold(offset, f64::max);
            timelines.extend(these);
        }
        let summary = Summary::new(&timelines, &Promise::default());
        runs.push((format!("batches of {size}"), f64::from(size), summary));
    }
    finish(&options.saved, "latency", &options.shape, most.into(), &runs)
}

/// One short request of another seed.
pub(super) fn warm_up(engine: &mut ModelEngine, work: &Work) -> Result<()> {
    let one = Work { requests: 1, output_tokens: 2, seed: !work.seed, ..*work };
    one.run(engine).map(drop)
}

/// Prints and saves runs. Exit code 1 when a request failed.
fn finish(
    saved: &Saved,
    what: &str,
    shape: &Shape,
    sequences: u64,
    runs: &[(String, f64, Summary)],
) -> Result<ExitCode> {
    console::print(format_args!("{}\n", heading()))?;
    for (label, _, summary) in runs {
        console::print(format_args!("{}\n", line(label, summary)))?;
    }
    let head = json!({
        "tandem": env!("CARGO_PKG_VERSION"), "bench": what, "seed": shape.bench_seed,
        "max_num_seqs": sequences, "input_tokens": shape.input_len,
        "output_tokens": shape.output_len, "prefix_tokens": shape.prefix_len,
    });
    saved.write(&format!("The engine's {what}"), head, runs, None)?;
    let failed = runs.iter().any(|(_, _, run)| run.failed > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
