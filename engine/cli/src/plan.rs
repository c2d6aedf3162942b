//! `tandem plan`: what a model weighs and whether it fits, from its configuration alone.

use std::process::ExitCode;

use clap::Args;
use tandem_engine::model::v41::Ledger;
use tandem_engine::plan::{Boards, Placement, Request, Strategies, plan};
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::limits::engram_config;
use crate::{console, model};

/// Settings to plan for; the board's own where left out.
#[derive(Args, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Devices that share one copy of the model
    #[arg(long, visible_alias = "tp", value_name = "RANKS")]
    tensor_parallel_size: Option<usize>,
    /// Longest sequence, prompt and answer together
    #[arg(short = 'c', long, visible_alias = "ctx-size", value_name = "TOKENS")]
    max_model_len: Option<u64>,
    /// Sequences that run at once
    #[arg(long, value_name = "SEQUENCES")]
    max_num_seqs: Option<u64>,
    /// Tokens of one step
    #[arg(long, value_name = "TOKENS")]
    max_num_batched_tokens: Option<u64>,
    /// Part of a device's memory that may be filled, above 0 and up to 1
    #[arg(long, value_name = "PART")]
    gpu_memory_utilization: Option<f64>,
    /// Pictures whose rows are held at once, 0 to leave the vision tower out; 2 if left out
    #[arg(long, value_name = "PICTURES")]
    max_pictures: Option<u64>,
    /// Leave the vision tower out, as --max-pictures 0
    #[arg(long, conflicts_with = "max_pictures")]
    language_model_only: bool,
    /// Draft tokens a step, 0 for none; the trained block if left out
    #[arg(long, visible_alias = "draft", value_name = "TOKENS")]
    draft_max: Option<i64>,
    /// Where the n-gram tables lie: {"cpu_offload": true} for the host
    #[arg(long, value_name = "JSON", value_parser = engram_config)]
    engram_config: Option<Placement>,
}

/// Prints the ledger, and the plan when `--device` names boards.
///
/// # Errors
/// Options that cannot be honoured whatever the memory. A plan that does not fit is printed with
/// its verdict and gives the verdict's exit code.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let config = model::config(common.model.as_deref())?;
    let Some(device) = &common.device else {
        if *options != Options::default() {
            return Err(Error::Argument {
                argument: "--device".into(),
                problem: "missing, and the other options need boards; give it, such as \
                          nvidia-h200x8"
                    .into(),
            });
        }
        console::print(format_args!("{}\n{Strategies}", Ledger::of(&config)))?;
        return Ok(ExitCode::SUCCESS);
    };
    let request = Request {
        tensor_parallel: options.tensor_parallel_size,
        engram: options.engram_config,
        context_tokens: options.max_model_len,
        sequences: options.max_num_seqs,
        step_tokens: options.max_num_batched_tokens,
        draft_tokens: options.draft_max,
        utilisation: options.gpu_memory_utilization,
        pictures: if options.language_model_only { Some(0) } else { options.max_pictures },
        ..Request::new(Boards::parse(device)?)
    };
    let plan = plan(&config, &request)?;
    console::print(&plan)?;
    Ok(plan.require_fit().map_or_else(|error| error.exit_code().into(), |()| ExitCode::SUCCESS))
}
