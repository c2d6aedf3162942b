//! `tandem bench --synthetic`: steps of a model's own sizes with random weights, beside the bytes
//! that they must move.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tandem_engine::measure::{Step, StepWork, Synthetic};
use tandem_engine::model::v41::Config;
use tandem_engine::plan::Placement;
use tandem_engine::weights::Content;
use tandem_engine::{Error, Result};
use tandem_hal::null::{Counted, Null};
use tandem_hal::{Device, DeviceInfo, Place, Rates};

use crate::arguments::Common;
use crate::limits::Limits;
use crate::progress::Progress;
use crate::ready::{BOUNDLESS_BYTES, SCORE_BUDGET_BYTES};
use crate::rehearsal::Rehearsal;
use crate::{backends, console, model};

/// From which weights and caches follow.
const SEED: u64 = 1;

/// What to measure without a checkpoint.
#[derive(Args, Debug)]
pub(crate) struct SyntheticOptions {
    /// Measure steps with random weights of this configuration instead: a folder, a config.json or a
    /// built-in name, such as v4.1-flash
    #[arg(long, value_name = "CONFIG", conflicts_with_all = [
        "n_prompt", "n_gen", "repetitions", "min_decode", "min_prefill", "max_ready", "max_resident",
        "max_model_len", "max_num_batched_tokens", "max_pictures", "language_model_only", "draft_max", "drafts",
        "draft_p_min",         "speculative_config", "enforce_eager", "graphs",
    ])]
    pub(crate) synthetic: Option<String>,
    /// Backbone layers of it, from the first on; as many as fit if left out
    #[arg(long, value_name = "LAYERS", requires = "synthetic")]
    layers: Option<usize>,
    /// Rows of the decoding steps, or ROWSxSEQUENCES
    #[arg(long, value_name = "LIST", requires = "synthetic", value_delimiter = ',', value_parser = rows,
          default_values = ["1", "6x1", "32", "128"])]
    rows: Vec<Rows>,
    /// Tokens of each sequence
    #[arg(long, value_name = "LIST", requires = "synthetic", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..), default_values = ["4096", "131072"])]
    contexts: Vec<u64>,
    /// Prompt tokens of the prefill step: the last of one prompt, or several whole shorter ones
    #[arg(long, value_name = "TOKENS", requires = "synthetic", default_value_t = 8192,
          value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    prefill_tokens: u64,
    /// N-gram tables have a part of their rows: one in so many
    #[arg(long, value_name = "DIVISOR", requires = "synthetic", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..))]
    shorten_tables: u64,
}

/// Rows of each of some sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rows {
    rows: u64,
    sequences: u64,
}

/// `32`, one row of each of 32 sequences, or `6x1`, six of one.
fn rows(text: &str) -> std::result::Result<Rows, String> {
    let (rows, sequences) = text.split_once('x').map_or(("1", text), |pair| pair);
    let number = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n));
    match (number(rows), number(sequences)) {
        (Some(rows), Some(sequences)) if rows * sequences <= 4096 => Ok(Rows { rows, sequences }),
        _ => Err("give rows such as 32, or 6x1 for six of one sequence; 4096 at most".to_owned()),
    }
}

/// Prints the time of every step beside its floors.
///
/// # Errors
/// A configuration that is none, layers that do not fit, or a device that fails.
pub(crate) fn run(
    common: &Common,
    options: &SyntheticOptions,
    name: &str,
    limits: &Limits,
) -> Result<ExitCode> {
    let config = model::config(Some(name))?;
    let refuse = |argument: &str, problem: String| {
        Err(Error::Argument { argument: argument.to_owned(), problem })
    };
    if common.model.is_some() {
        return refuse("--model", "--synthetic names the configuration; leave one out".to_owned());
    }
    let longest = config.max_position_tokens as u64;
    if let Some(context) = options.contexts.iter().find(|context| **context > longest) {
        return refuse("--contexts", format!("{context} is over {longest}, the model's longest"));
    }
    let device = backends::open(common)?.swap_remove(0);
    let bench = Bench { config, limits, options, device };
    let (layers, part) = bench.part()?;
    let works = bench.works();
    let costs = bench.costs(&part, &works)?;
    let mut progress = Progress::new("making random weights");
    let mut show = |p: tandem_engine::weights::Progress| progress.show(p.done_bytes, p.total_bytes);
    let mut model = bench.build(&bench.device, &part, Content::Random(SEED), &mut show)?;
    console::print(bench.heading(layers, &part))?;
    let rates = Rates::of(&bench.device.info().board);
    for (work, cost) in works.iter().zip(&costs) {
        console::print(line(work, &model.time(work)?, cost, rates))?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    config: Config,
    limits: &'a Limits,
    options: &'a SyntheticOptions,
    device: Arc<dyn Device>,
}

impl Bench<'_> {
    fn works(&self) -> Vec<StepWork> {
        let decode = |context: u64| {
            let rows = self.options.rows.iter();
            rows.map(move |r| StepWork::decode(r.sequences, r.rows.min(context), context))
        };
        let contexts = self.options.contexts.iter().copied();
        let prefill =
            contexts.clone().map(|context| StepWork::prefill(self.options.prefill_tokens, context));
        contexts.flat_map(decode).chain(prefill).collect()
    }

    fn build(
        &self,
        device: &Arc<dyn Device>,
        part: &Config,
        content: Content<'_>,
        progress: &mut dyn FnMut(tandem_engine::weights::Progress),
    ) -> Result<Synthetic> {
        let tables = match self.limits.engram_config {
            Some(Placement::Host) => Place::Pinned,
            Some(Placement::Device) | None => Place::Device,
        };
        let options = StepWork::options(&self.works());
        Synthetic::new(device, part, options, (content, tables), SCORE_BUDGET_BYTES, progress)
    }

    /// The layers that were asked for, or as many as fit.
    fn part(&self) -> Result<(usize, Config)> {
        let cut = |layers| self.config.cut(layers, self.options.shorten_tables);
        let usable = self.limits.usable_bytes(self.device.info().memory_bytes)?;
        let fits = |layers: usize| -> Result<()> {
            let rehearsal = Rehearsal::new(self.device.clone(), usable);
            let device: Arc<dyn Device> = Arc::new(rehearsal);
            self.build(&device, &cut(layers)?, Content::Unspecified, &mut |_| {}).map(|_| ())
        };
        let refused = |layers: usize, error: Error| {
            let Error::Device(tandem_hal::Error::OutOfMemory { .. }) = error else { return error };
            let problem =
                format!("{layers} layers: {error}; give fewer --layers, --rows or --contexts");
            Error::DoesNotFit { problem }
        };
        if let Some(layers) = self.options.layers {
            fits(layers).map_err(|error| refused(layers, error))?;
            return Ok((layers, cut(layers)?));
        }
        fits(1).map_err(|error| refused(1, error))?;
        let (mut some, mut most) = (1, self.config.layers);
        while some < most {
            let middle = (some + most).div_ceil(2);
            if fits(middle).is_ok() { some = middle } else { most = middle - 1 }
        }
        Ok((some, cut(some)?))
    }

    /// What each step must do, counted on a device that does nothing.
    fn costs(&self, part: &Config, works: &[StepWork]) -> Result<Vec<Counted>> {
        let info = DeviceInfo { memory_bytes: BOUNDLESS_BYTES, ..self.device.info().clone() };
        let null = Null::new(info, None);
        let device: Arc<dyn Device> = Arc::new(null.clone());
        let mut model = self.build(&device, part, Content::Unspecified, &mut |_| {})?;
        let cost = |work| {
            let before = null.counted();
            model.run(work)?;
            Ok(null.counted().since(&before))
        };
        works.iter().map(cost).collect()
    }

    fn heading(&self, layers: usize, part: &Config) -> String {
        let info = self.device.info();
        let gigabytes = |prefix: &str| {
            let lines = self.device.ledger().into_iter();
            let bytes: u64 = lines.filter(|l| l.purpose.starts_with(prefix)).map(|l| l.bytes).sum();
            bytes as f64 / 1e9
        };
        let tables = match &part.engram {
            Some(_) => format!("n-gram tables of 1/{} of their rows", self.options.shorten_tables),
            None => "no n-gram table".to_owned(),
        };
        format!(
            "{} ({}): {layers} of {} layers, {tables}, no draft; {:.2} GB, {:.2} GB of it caches\n\
             times are a captured step's from token ids to logits, all rows through all layers; \
             floors count every operator's operands once\n",
            info.name,
            info.board,
            self.config.layers,
            gigabytes(""),
            gigabytes("caches."),
        )
    }
}

/// One step: its size, time, rate and floors.
fn line(work: &StepWork, step: &Step, cost: &Counted, rates: Option<&Rates>) -> String {
    let StepWork { sequences, rows, context_tokens, every_row } = *work;
    let what = if every_row { "decode" } else { "prefill" };
    let (seconds, bytes) =
        (step.time.as_secs_f64(), cost.cost.read_bytes + cost.cost.written_bytes);
    let floors = rates.map_or_else(String::new, |rates| {
        let wide = cost.cost.flops - cost.narrow_flops;
        let moved = bytes as f64 / rates.bytes;
        let computed = cost.narrow_flops / rates.fp8 + wide / rates.bf16;
        format!(
            ", byte floor {} ({:.3} of the time), operations {}",
            milliseconds(Duration::from_secs_f64(moved)),
            moved / seconds,
            milliseconds(Duration::from_secs_f64(computed)),
        )
    });
    format!(
        "{what:<8}{:>6} rows of {sequences:>4} at {context_tokens:>7}: {:>14}, {:>9.1} rows/s; {:>8.3} GB{floors}\n",
        sequences * rows,
        milliseconds(step.time),
        work.tokens() as f64 / seconds,
        bytes as f64 / 1e9,
    )
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_as_many_sequences_or_of_so_many() {
        assert_eq!(rows("32"), Ok(Rows { rows: 1, sequences: 32 }));
        assert_eq!(rows("6x1"), Ok(Rows { rows: 6, sequences: 1 }));
        for text in ["", "0", "x", "6x", "-1", "4097", "65x65"] {
            assert!(rows(text).is_err(), "{text}");
        }
    }
}
