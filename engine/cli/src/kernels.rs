//! `tandem kernels`: every operator, its rows, and what each device makes of them.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tandem_engine::Result;
use tandem_engine::model::v41::Config;
use tandem_hal::{
    Candidate, Device, Error, Op, Operator, Sym, Want, dispatch, for_each_operator, is_fused,
};
use tandem_reference::Card;

use crate::arguments::Common;
use crate::limits::Limits;
use crate::{backends, console, model, ready};

/// What to list.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only operators whose name begins with this, such as gemm or attn.sparse
    #[arg(value_name = "OPERATOR")]
    operator: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

/// An operator and the launches to judge its rows by.
struct Entry {
    id: &'static str,
    core: bool,
    /// Whether the model plans it; the launch is a sample otherwise.
    used: bool,
    launches: Vec<(Op, Want)>,
}

/// The first shape of the card's benches, or of its edge cases where nothing is timed.
fn sample<D: Card>() -> Entry {
    let mut shapes = D::bench_shapes().into_iter().chain(D::edges());
    let shape = shapes.next().map(|(d, limits)| (d.into(), Want::row_invariant(limits)));
    Entry { id: D::ID, core: D::CORE, used: false, launches: shape.into_iter().collect() }
}

macro_rules! samples {
    ([] $($name:ident)*) => {
        [$(sample::<tandem_hal::$name>()),*]
    };
}

/// Every operator in order of the list, each with a sample.
fn samples() -> Vec<Entry> {
    for_each_operator!([samples]).into()
}

/// The names of an operator's rows on a device, and of the bits that several of them share.
pub(crate) fn rows(device: &dyn Device, operator: &str) -> Vec<&'static str> {
    let samples = samples();
    let launch =
        samples.iter().filter(|entry| entry.id == operator).flat_map(|e| &e.launches).next();
    let candidates = launch.map(|(op, want)| device.candidates(op, want)).unwrap_or_default();
    let mut names: Vec<_> = candidates.iter().map(|candidate| candidate.kernel).collect();
    for bits in candidates.iter().map(|candidate| candidate.bits) {
        let shared = candidates.iter().filter(|other| other.bits == bits).count() > 1;
        if shared && !names.contains(&bits) {
            names.push(bits);
        }
    }
    names
}

/// Prints the table of each device.
///
/// # Errors
/// A device, model or operator that does not exist.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let prefix = options.operator.as_deref().unwrap_or_default();
    if !Op::IDS.iter().any(|id| id.starts_with(prefix)) {
        let argument = "kernels".to_owned();
        let problem = format!("no operator begins with {prefix:?}; leave it out to see them all");
        return Err(tandem_engine::Error::Argument { argument, problem });
    }
    let config = model::config(common.model.as_deref())?;
    let print = |common: &Common| {
        let device = &backends::open(common)?[0];
        let mut entries = entries(device, &config, &options.limits)?;
        entries.retain(|entry| entry.id.starts_with(prefix));
        console::print(table(device.as_ref(), &entries))
    };
    if common.device.is_some() {
        print(common)?;
        return Ok(ExitCode::SUCCESS);
    }
    for backend in backends::listed(common)? {
        match backend.devices {
            Err(error) => console::print(format_args!("{error}\n"))?,
            Ok(_) => {
                let device = Some(backend.provider.name().to_owned());
                print(&Common { device, ..common.clone() })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every operator with the launches that the model plans, each descriptor once.
fn entries(device: &Arc<dyn Device>, config: &Config, limits: &Limits) -> Result<Vec<Entry>> {
    let planned = ready::operators(device, config, limits)?;
    let mut entries = samples();
    for entry in &mut entries {
        let mut launches: Vec<(Op, Want)> = Vec::new();
        for (op, want) in planned.iter().filter(|(op, _)| op.id() == entry.id) {
            match launches.iter_mut().find(|(known, _)| known == op) {
                None => launches.push((op.clone(), *want)),
                // Of several plans the one for the largest launch.
                Some((_, known)) if rows_of(op, want) > rows_of(op, known) => *known = *want,
                Some(_) => {}
            }
        }
        if !launches.is_empty() {
            (entry.used, entry.launches) = (true, launches);
        }
    }
    Ok(entries)
}

/// Rows of data of the largest launch.
fn rows_of(op: &Op, want: &Want) -> u64 {
    fn axis<D: Operator>(_: &D) -> Sym {
        D::ROWS
    }
    want.limits.at(dispatch!(op, d => axis(d)))
}

/// What the lines say of a row.
const LEGEND: &str = "  rows best first; RowInvariant: no result depends on the rest of its launch; \
                      equal bits: equal results";

/// A device's rows as text. Descriptors that are judged alike stand together.
fn table(device: &dyn Device, entries: &[Entry]) -> String {
    let info = device.info();
    let mut text = format!("{} ({}, {})\n{LEGEND}\n", info.name, info.board, info.arch);
    for Entry { id, core, used, launches } in entries {
        let core = if *core { "" } else { ", reference only" };
        let used = if *used { "" } else { ", not used by this model" };
        line(&mut text, format_args!("  {id}{core}{used}"));
        let judged: Vec<_> = launches.iter().map(|(op, want)| verdicts(device, op, want)).collect();
        for (i, verdicts) in judged.iter().enumerate() {
            let (op, want) = &launches[i];
            line(&mut text, format_args!("    {} up to {} rows", op.line(), rows_of(op, want)));
            if judged.get(i + 1) != Some(verdicts) {
                verdicts.iter().for_each(|v| line(&mut text, format_args!("      {v}")));
            }
        }
    }
    text
}

/// The rows of one descriptor, best first, and what runs.
fn verdicts(device: &dyn Device, op: &Op, want: &Want) -> Vec<String> {
    let chosen = device.prepare(op, want);
    let rows = rows_of(op, want);
    let candidates = device.candidates(op, want);
    let mut lines: Vec<_> = candidates
        .iter()
        .map(|candidate| {
            let runs = |rows| chosen.as_ref().is_ok_and(|k| k.name(rows) == candidate.kernel);
            let state = match (runs(1), runs(rows)) {
                (true, true) => "runs".to_owned(),
                (true, false) => "runs 1 row".to_owned(),
                (false, true) => format!("runs {rows} rows"),
                (false, false) => "could run".to_owned(),
            };
            verdict(candidate, &state)
        })
        .collect();
    match chosen {
        Err(Error::Unsupported { .. }) if dispatch!(op, d => is_fused(d)) => {
            lines.push("runs by its decomposition".to_owned());
        }
        Err(error) => lines.push(error.to_string()),
        Ok(_) => {}
    }
    lines
}

fn verdict(candidate: &Candidate, state: &str) -> String {
    let state = match &candidate.verdict {
        Err(reason) => format!("refused: {reason}"),
        Ok(needs) => format!("{state}, {} B of workspace", needs.workspace_bytes),
    };
    let Candidate { kernel, numerics, bits, .. } = candidate;
    format!("{kernel:<12}  {numerics:?}, bits {bits}: {state}")
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes any text");
}
