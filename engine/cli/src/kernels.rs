//! `tandem kernels`: every operator, its rows, and what each device makes of them.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use tandem_engine::Result;
use tandem_hal::{Candidate, Device, Error, Line, Op, Want, for_each_operator, is_fused};
use tandem_reference::Card;

use crate::arguments::Common;
use crate::{backends, console};

/// What to list.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only operators whose name begins with this, such as gemm or attn.sparse
    #[arg(value_name = "OPERATOR")]
    operator: Option<String>,
}

/// An operator with a shape to judge rows by.
struct Sample {
    id: &'static str,
    core: bool,
    shape: Option<Shape>,
}

/// A descriptor and the largest launch it is planned for.
struct Shape {
    op: Op,
    fused: bool,
    want: Want,
    /// Rows of data of that launch.
    rows: u64,
}

/// The first shape of the card's benches, or of its edge cases where nothing is timed.
fn sample<D: Card>() -> Sample {
    let mut shapes = D::bench_shapes().into_iter().chain(D::edges());
    let shape = shapes.next().map(|(descriptor, limits)| Shape {
        fused: is_fused(&descriptor),
        op: descriptor.into(),
        want: Want::row_invariant(limits),
        rows: limits.at(D::ROWS),
    });
    Sample { id: D::ID, core: D::CORE, shape }
}

macro_rules! samples {
    ([] $($name:ident)*) => {
        [$(sample::<tandem_hal::$name>()),*]
    };
}

fn samples() -> impl Iterator<Item = Sample> {
    for_each_operator!([samples]).into_iter()
}

/// The names of an operator's rows on a device.
pub(crate) fn rows(device: &dyn Device, operator: &str) -> Vec<&'static str> {
    let shape = samples().find(|sample| sample.id == operator).and_then(|sample| sample.shape);
    let judged = shape.map(|shape| device.candidates(&shape.op, &shape.want));
    judged.unwrap_or_default().iter().map(|candidate| candidate.kernel).collect()
}

/// Prints the table of each device.
///
/// # Errors
/// A device or operator that does not exist.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let prefix = options.operator.as_deref().unwrap_or_default();
    let samples: Vec<_> = samples().filter(|sample| sample.id.starts_with(prefix)).collect();
    if samples.is_empty() {
        let argument = "kernels".to_owned();
        let problem = format!("no operator begins with {prefix:?}; leave it out to see them all");
        return Err(tandem_engine::Error::Argument { argument, problem });
    }
    if common.device.is_some() {
        console::print(table(backends::open(common)?[0].as_ref(), &samples))?;
        return Ok(ExitCode::SUCCESS);
    }
    for backend in backends::listed(common)? {
        match backend.devices {
            Err(error) => console::print(format_args!("{error}\n"))?,
            Ok(_) => {
                let name = Some(backend.provider.name().to_owned());
                let one = Common { device: name, ..common.clone() };
                console::print(table(backends::open(&one)?[0].as_ref(), &samples))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A device's rows as text.
fn table(device: &dyn Device, samples: &[Sample]) -> String {
    let info = device.info();
    let mut text = format!("{} ({}, {})\n", info.name, info.board, info.arch);
    for Sample { id, core, shape } in samples {
        let mark = if *core { "" } else { " (reference only)" };
        match shape {
            None => line(&mut text, format_args!("  {id}{mark}\n    no shape to judge it by")),
            Some(shape) => {
                let limits = shape.want.limits.line();
                line(&mut text, format_args!("  {}{mark} up to {limits}", shape.op.line()));
                rows_of(device, shape, &mut text);
            }
        }
    }
    text
}

/// The rows of one operator, best first, and what runs.
fn rows_of(device: &dyn Device, shape: &Shape, text: &mut String) {
    let chosen = device.prepare(&shape.op, &shape.want);
    for candidate in &device.candidates(&shape.op, &shape.want) {
        let runs = chosen.as_ref().is_ok_and(|kernel| kernel.name(shape.rows) == candidate.kernel);
        line(text, format_args!("    {}", verdict(candidate, runs)));
    }
    match chosen {
        Err(Error::Unsupported { .. }) if shape.fused => {
            line(text, format_args!("    runs by its decomposition"));
        }
        Err(error) => line(text, format_args!("    {error}")),
        Ok(_) => {}
    }
}

fn verdict(candidate: &Candidate, runs: bool) -> String {
    let state = match &candidate.verdict {
        Err(reason) => format!("refused: {reason}"),
        Ok(needs) => {
            let state = if runs { "runs" } else { "could run" };
            format!("{state}, {} B of workspace", needs.workspace_bytes)
        }
    };
    let Candidate { kernel, numerics, bits, .. } = candidate;
    format!("{kernel:<12}  {numerics:?}, bits {bits}: {state}")
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes any text");
}
