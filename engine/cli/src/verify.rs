//! `tandem verify`: a checkpoint on a device against a folder of golden files.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tandem_engine::model::v41::Recipe;
use tandem_engine::verify::Run;
use tandem_engine::weights::Files;
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::limits::Limits;
use crate::model::Source;
use crate::progress::Progress;
use crate::{backends, console, requests};

/// What to compare with.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder of golden files, made on the same checkpoint
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "requests",
        conflicts_with = "Limits"
    )]
    goldens: Option<PathBuf>,
    /// Ask the model, as the server would, what it should know: a product of two numbers, with and without a stream, drafts,
    /// reasoning, tools and the cache, and two pictures
    #[arg(long, conflicts_with = "goldens")]
    requests: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Prints every figure; the last line is the verdict. Exit code 1 beyond a gate.
///
/// # Errors
/// Whatever is wrong with the checkpoint, the golden files or the device.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let Some(folder) = &options.goldens else {
        return requests::run(common, &options.limits);
    };
    let goldens = Files::folder(folder);
    goldens.names()?;
    let source = Source::named(common.model.as_deref())?;
    let devices = backends::open(common)?;
    let [device] = &devices[..] else {
        return Err(Error::Argument {
            argument: "--device".into(),
            problem: "verification runs on one device; name one, such as reference:0".into(),
        });
    };
    let mut reading = Progress::new("reading weights");
    let run = Run { model: &source.files, goldens: &goldens, device };
    let recipe = Recipe::of(&source.config);
    let mut progress =
        |read: tandem_engine::weights::Progress| reading.show(read.done_bytes, read.total_bytes);
    let mut note = |name: &str| console::aside(format_args!("comparing {name}"));
    let report = run.report(&source.config, &recipe, &mut progress, &mut note)?;
    console::print(&report)?;
    Ok(if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
