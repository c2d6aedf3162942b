//! `tandem bench`: how fast the loaded model reads and writes, how soon it is ready, and what it
//! keeps in memory.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use tandem_engine::exec::{Request, Usage, What};
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::limits::Limits;
use crate::ready::{Drafts, Ready, Work};
use crate::{console, load, synthetic};

/// What to measure.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// Tokens of the prompt
    #[arg(short = 'p', long, value_name = "TOKENS", default_value_t = 512)]
    n_prompt: u64,
    /// Tokens to generate
    #[arg(short = 'n', long, value_name = "TOKENS", default_value_t = 128)]
    n_gen: u64,
    /// Times to measure; the best counts
    #[arg(short, long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Fail below this many generated tokens a second
    #[arg(long, value_name = "RATE", value_parser = bound)]
    min_decode: Option<f64>,
    /// Fail below this many prompt tokens a second
    #[arg(long, value_name = "RATE", value_parser = bound)]
    min_prefill: Option<f64>,
    /// Fail when getting ready takes more milliseconds
    #[arg(long, value_name = "MS", value_parser = bound)]
    max_ready: Option<f64>,
    /// Fail above this many megabytes resident
    #[arg(long, value_name = "MB", value_parser = bound)]
    max_resident: Option<f64>,
    #[command(flatten)]
    synthetic: synthetic::SyntheticOptions,
    #[command(flatten)]
    limits: Limits,
}

/// What else may be measured.
#[derive(Debug, Subcommand)]
enum Other {
    /// What clients of a server get, at loads that grow
    Serve(Box<load::Options>),
    /// How many tokens a second the engine gives, without a server
    Throughput(Box<load::Throughput>),
    /// How long a batch takes from its beginning to its end, without a server
    Latency(Box<load::Latency>),
    /// Search the options that give the most tokens a second within bounds, and print them as a file for --config
    Tune(Box<load::Tune>),
}

/// A figure to compare with, which NaN is not.
fn bound(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(bound) if bound >= 0.0 => Ok(bound),
        _ => Err("give a number, 0 or more".to_owned()),
    }
}

/// One run of a prompt and its answer.
struct Run {
    prefill: Duration,
    decode: Duration,
    usage: Usage,
}

/// Prints the figures, greedy with and without drafts.
///
/// # Errors
/// As other commands. A figure beyond its bound is printed as such and gives exit code 1.
pub(crate) fn run(common: &Common, options: &Options, started: Instant) -> Result<ExitCode> {
    match &options.other {
        Some(Other::Serve(options)) => return load::run(common, options),
        Some(Other::Throughput(options)) => return load::throughput(common, options),
        Some(Other::Latency(options)) => return load::latency(common, options),
        Some(Other::Tune(options)) => return load::tune(common, options),
        None => {}
    }
    if let Some(name) = &options.synthetic.synthetic {
        return synthetic::run(common, &options.synthetic, name, &options.limits);
    }
    if options.n_prompt < 1 || options.n_gen < 2 {
        let problem = "give at least 1 prompt token and 2 to generate".into();
        return Err(Error::Argument { argument: "--n-prompt and --n-gen".into(), problem });
    }
    let work = Work { drafts: Drafts::Always, ..Work::ALONE };
    let mut ready = Ready::load(common, &options.limits, work)?;
    let (tokens, room) =
        (options.n_prompt.saturating_add(options.n_gen), ready.engine.capacity_tokens());
    if tokens > room {
        let problem = format!("{tokens} tokens in all, but a sequence has {room}; give fewer");
        return Err(Error::Argument { argument: "--n-prompt and --n-gen".into(), problem });
    }
    let mut report = Report { passed: true };
    let ready_ms = started.elapsed().as_secs_f64() * 1e3;
    report.at_most("ready", ready_ms, "ms", options.max_ready)?;
    let block = ready.engine.options().draft_tokens;
    let drafts: &[bool] = if block == 0 { &[false] } else { &[false, true] };
    for &drafts in drafts {
        let runs = (0..options.repetitions).map(|_| measure(&mut ready, options, drafts));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let rate = |tokens: u64, time: fn(&Run) -> Duration| {
            let rate = |run: &Run| tokens as f64 / time(run).as_secs_f64();
            runs.iter().map(rate).fold(0.0, f64::max)
        };
        let decode = rate(options.n_gen - 1, |run| run.decode);
        if drafts {
            let Usage { drafted_tokens, accepted_tokens, .. } = runs[0].usage;
            let note = format!("{accepted_tokens} of {drafted_tokens} drafts stood");
            report.say("decode, drafts", decode, "tokens/s", &note)?;
        } else {
            let prefill = rate(options.n_prompt, |run| run.prefill);
            report.at_least("prefill", prefill, "tokens/s", options.min_prefill)?;
            report.at_least("decode", decode, "tokens/s", options.min_decode)?;
        }
    }
    for (name, key) in [("resident", "VmRSS:"), ("resident, peak", "VmHWM:")] {
        if let Some(megabytes) = resident_megabytes(key) {
            report.at_most(name, megabytes, "MB", options.max_resident)?;
        }
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Greedy and past every end, so that each run does the same work.
fn measure(ready: &mut Ready, options: &Options, drafts: bool) -> Result<Run> {
    let vocab = ready.source.config.vocab_size as u64;
    // A full-period walk over the ids, so that the prompt does not repeat itself.
    let prompt = (0..options.n_prompt).map(|at| (at * 7919 % vocab) as u32).collect();
    let max_tokens = Some(options.n_gen);
    let request = Request { prompt, max_tokens, drafts, ..Request::default() };
    let begin = Instant::now();
    ready.engine.add(request)?;
    let mut first = None;
    loop {
        for event in ready.engine.step()? {
            match event.what {
                What::Token { .. } => {
                    first.get_or_insert_with(Instant::now);
                }
                What::Started { .. } => {}
                What::Finished { usage, .. } => {
                    let first = first.unwrap_or(begin);
                    return Ok(Run { prefill: first - begin, decode: first.elapsed(), usage });
                }
            }
        }
    }
}

/// Memory of this process as Linux reports it.
fn resident_megabytes(key: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Figures and whether all kept their bounds.
struct Report {
    passed: bool,
}

impl Report {
    fn say(&self, name: &str, value: f64, unit: &str, note: &str) -> Result<()> {
        let line = format!("{name:<16}{value:>10.1} {unit:<9} {note}");
        console::print(format_args!("{}\n", line.trim_end()))
    }

    fn at_most(&mut self, name: &str, value: f64, unit: &str, bound: Option<f64>) -> Result<()> {
        let kept = bound.is_none_or(|bound| value <= bound);
        self.judge((name, value, unit), kept, bound.map(|bound| format!("at most {bound}")))
    }

    fn at_least(&mut self, name: &str, value: f64, unit: &str, bound: Option<f64>) -> Result<()> {
        let kept = bound.is_none_or(|bound| value >= bound);
        self.judge((name, value, unit), kept, bound.map(|bound| format!("at least {bound}")))
    }

    fn judge(
        &mut self,
        (name, value, unit): (&str, f64, &str),
        kept: bool,
        bound: Option<String>,
    ) -> Result<()> {
        self.passed &= kept;
        let verdict = if kept { "kept" } else { "MISSED" };
        let note = bound.map_or_else(String::new, |bound| format!("{bound}: {verdict}"));
        self.say(name, value, unit, &note)
    }
}
