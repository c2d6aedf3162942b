//! `tandem bench tune`: the options that give the most tokens a second within what users are promised.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tandem_engine::{Error, Result};

use super::command::{Saved, above_zero, heading, line, write};
use super::offline_command::{Shape, load};
use super::summary::{Promise, Summary};
use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;

/// Another choice has to give this much more to be taken: less is chance.
const BETTER: f64 = 1.03;

/// What is promised, and what is asked.
#[derive(Args, Debug)]
pub(crate) struct Tune {
    /// Milliseconds to the first token, which 99 of 100 requests keep
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    ttft_ms: Option<f64>,
    /// Milliseconds per token behind the first, which 99 of 100 requests keep
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    tpot_ms: Option<f64>,
    /// Most sequences at once that are tried
    #[arg(long, value_name = "SEQUENCES", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    most_seqs: u64,
    /// Requests of a trial for each sequence that runs at once
    #[arg(long, value_name = "REQUESTS", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    requests_per_seq: u16,
    #[command(flatten)]
    shape: Shape,
    /// Write the options that were found to a file
    #[arg(long, value_name = "FILE")]
    save_config: Option<String>,
    #[command(flatten)]
    saved: Saved,
    #[command(flatten)]
    limits: Limits,
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knobs {
    sequences: u64,
    step_tokens: u64,
    step_ms: Option<u64>,
    draft_tokens: u64,
}

impl Knobs {
    /// As a file for `--config`.
    fn toml(&self) -> String {
        let step_ms = self.step_ms.map_or_else(String::new, |ms| format!("max-step-ms = {ms}\n"));
        format!(
            "max-num-seqs = {}\nmax-num-batched-tokens = {}\n{step_ms}draft-max = {}\n",
            self.sequences, self.step_tokens, self.draft_tokens
        )
    }

    fn label(&self) -> String {
        let step = self.step_ms.map_or_else(String::new, |ms| format!("/{ms}ms"));
        format!("{}/{}/{}{step}", self.sequences, self.step_tokens, self.draft_tokens)
    }

    /// The same with as many tokens a step as its sequences need.
    fn whole(self) -> Self {
        let least = self.sequences * (1 + self.draft_tokens);
        Self { step_tokens: self.step_tokens.max(least), ..self }
    }
}

/// Tokens a second of a trial, if it kept what is promised.
type Score = Option<f64>;

/// Goes from one choice to the next; `measure` tells what a choice gives, or `None` when it cannot be made at all.
///
/// Sequences double until that gives no more; then tokens of a step are doubled and halved, steps bounded, and drafts left
/// out or taken, each as long as it gives more, and sequences doubled once more under the choices that were found.
fn search(
    begin: Knobs,
    (most_seqs, tpot_ms, block): (u64, Option<f64>, u64),
    mut measure: impl FnMut(Knobs) -> Result<Option<Score>>,
) -> Result<Option<(Knobs, f64)>> {
    let mut best: Option<(Knobs, f64)> = None;
    let mut known: Vec<Knobs> = vec![];
    let mut at = begin;
    let mut trial = |knobs: Knobs, best: &mut Option<(Knobs, f64)>| -> Result<bool> {
        let knobs = knobs.whole();
        if known.contains(&knobs) {
            return Ok(false);
        }
        known.push(knobs);
        let Some(Some(rate)) = measure(knobs)? else { return Ok(false) };
        let is_better = best.is_none_or(|(_, most)| rate > BETTER * most);
        if is_better {
            *best = Some((knobs, rate));
        }
        Ok(is_better)
    };
    let here = |best: &Option<(Knobs, f64)>, begin: Knobs| best.map_or(begin, |(knobs, _)| knobs);
    for _ in 0..2 {
        let from = here(&best, at);
        trial(from, &mut best)?;
        let mut sequences = from.sequences;
        while sequences < most_seqs {
            sequences = (2 * sequences).min(most_seqs);
            if !trial(Knobs { sequences, ..here(&best, at) }, &mut best)? {
                break;
            }
        }
        for grow in [true, false] {
            loop {
                let now = here(&best, at);
                let step_tokens = if grow { now.step_tokens * 2 } else { now.step_tokens / 2 };
                let fits = (1..=1 << 16).contains(&step_tokens);
                if !fits || !trial(Knobs { step_tokens, ..now }, &mut best)? {
                    break;
                }
            }
        }
        for part in [1.0, 0.5] {
            let Some(ms) = tpot_ms.map(|ms| (ms * part) as u64).filter(|ms| *ms > 0) else {
                continue;
            };
            trial(Knobs { step_ms: Some(ms), ..here(&best, at) }, &mut best)?;
        }
        for draft_tokens in [0, block] {
            trial(Knobs { draft_tokens, ..here(&best, at) }, &mut best)?;
        }
        at = here(&best, at);
    }
    Ok(best)
}

/// Prints a line for every trial to standard error, and what was found to standard output. Exit code 1 when nothing keeps
/// the promise.
///
/// # Errors
/// As every command that loads a model, and files that cannot be written.
pub(crate) fn tune(common: &Common, options: &Tune) -> Result<ExitCode> {
    if options.limits.speculative_config.is_some() {
        let problem = "drafting is searched; leave it out".to_owned();
        return Err(Error::Argument { argument: "--speculative-config".into(), problem });
    }
    if options.limits.drafts.is_some_and(|drafts| drafts.tokens.is_some()) {
        let problem = "the number of drafts is searched; leave it out".to_owned();
        return Err(Error::Argument { argument: "--drafts".into(), problem });
    }
    let first = load(common, &options.limits, 1)?;
    let dspark = first.source.config.dspark.as_ref();
    let block = dspark.map_or(0, |dspark| dspark.block_size as u64);
    let begin = Knobs {
        sequences: 1,
        step_tokens: options.limits.max_num_batched_tokens,
        step_ms: options.limits.max_step_ms,
        draft_tokens: first.engine.options().draft_tokens,
    };
    drop(first);
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let promise =
        Promise { ttft: seconds(options.ttft_ms), tpot: seconds(options.tpot_ms), e2e: None };
    let mut runs: Vec<(String, f64, Summary)> = vec![];
    console::aside("load is SEQUENCES/TOKENS OF A STEP/DRAFT TOKENS, and the bound of a step");
    console::aside(heading());
    let measure = |knobs: Knobs| {
        let Some(summary) = options.trial(common, knobs, &promise)? else { return Ok(None) };
        console::aside(line(&knobs.label(), &summary));
        let kept = summary.failed == 0
            && promise.ttft.is_none_or(|most| summary.ttft.at(0.99) <= most)
            && promise.tpot.is_none_or(|most| summary.tpot.at(0.99) <= most);
        let rate = summary.output_rate();
        runs.push((knobs.label(), runs.len() as f64, summary));
        Ok(Some(kept.then_some(rate)))
    };
    let found = search(begin, (options.most_seqs, options.tpot_ms, block), measure)?;
    let head = json!({
        "tandem": env!("CARGO_PKG_VERSION"), "bench": "tune", "seed": options.shape.bench_seed,
        "ttft_ms": options.ttft_ms, "tpot_ms": options.tpot_ms, "found": found.map(|(knobs, _)| knobs.label()),
        "input_tokens": options.shape.input_len, "output_tokens": options.shape.output_len,
    });
    options.saved.write("Trials of options", head, &runs, None)?;
    let Some((knobs, rate)) = found else {
        console::aside(
            "nothing that was tried keeps the promise; ask for shorter prompts or give it more time",
        );
        return Ok(ExitCode::FAILURE);
    };
    let text = format!("# tandem bench tune: {rate:.1} tokens a second\n{}", knobs.toml());
    if let Some(path) = &options.save_config {
        write(path, &text)?;
    }
    console::print(text)?;
    Ok(ExitCode::SUCCESS)
}

impl Tune {
    /// What a choice gives; `None`, having said why, where there is no room for it.
    fn trial(&self, common: &Common, knobs: Knobs, promise: &Promise) -> Result<Option<Summary>> {
        let limits = Limits {
            max_num_batched_tokens: knobs.step_tokens,
            max_step_ms: knobs.step_ms,
            draft_max: i64::try_from(knobs.draft_tokens).ok(),
            ..self.limits.clone()
        };
        let mut ready = match load(common, &limits, knobs.sequences) {
            Err(error @ Error::DoesNotFit { .. }) => {
                console::aside(format_args!("{}: {error}", knobs.label()));
                return Ok(None);
            }
            loaded => loaded?,
        };
        let at_once = knobs.sequences as usize;
        let work =
            self.shape.work(&ready, at_once * usize::from(self.requests_per_seq), at_once)?;
        super::offline_command::warm_up(&mut ready.engine, &work)?;
        Ok(Some(Summary::new(&work.run(&mut ready.engine)?, promise)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Knobs = Knobs { sequences: 1, step_tokens: 256, step_ms: None, draft_tokens: 0 };

    /// A machine that gives the most at 8 sequences and 1024 tokens, where steps are bounded, and with drafts.
    fn rate(knobs: Knobs) -> f64 {
        let fall = |value: u64, best: u64| 1.0 / (1.0 + (value as f64 / best as f64).log2().abs());
        let bounded = if knobs.step_ms == Some(20) { 1.2 } else { 1.0 };
        let drafted = if knobs.draft_tokens == 5 { 1.3 } else { 1.0 };
        fall(knobs.sequences, 8) * fall(knobs.step_tokens, 1024) * bounded * drafted
    }

    #[test]
    fn the_best_of_all_is_found() {
        let found = search(BEGIN, (64, Some(20.0), 5), |knobs| Ok(Some(Some(rate(knobs)))));
        let (knobs, _) = found.unwrap().unwrap();
        assert_eq!(
            knobs,
            Knobs { sequences: 8, step_tokens: 1024, step_ms: Some(20), draft_tokens: 5 }
        );
        let text =
            "max-num-seqs = 8\nmax-num-batched-tokens = 1024\nmax-step-ms = 20\ndraft-max = 5\n";
        assert_eq!(knobs.toml(), text);
    }

    #[test]
    fn what_breaks_the_promise_or_does_not_fit_is_not_chosen() {
        let mut tried = vec![];
        let found = search(BEGIN, (64, None, 5), |knobs| {
            tried.push(knobs);
            let fits = knobs.step_tokens < 512;
            Ok(fits.then(|| (knobs.sequences <= 4).then(|| rate(knobs))))
        });
        let (knobs, _) = found.unwrap().unwrap();
        assert_eq!((knobs.sequences, knobs.step_tokens), (4, 256));
        let again = tried.iter().enumerate().any(|(at, knobs)| tried[..at].contains(knobs));
        assert!(!again, "{tried:?}");
        assert!(
            tried
                .iter()
                .all(|knobs| knobs.step_tokens >= knobs.sequences * (1 + knobs.draft_tokens))
        );
        assert_eq!(search(BEGIN, (64, None, 0), |_| Ok(Some(None))).unwrap(), None);
    }
}
