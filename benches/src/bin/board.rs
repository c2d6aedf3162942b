//! Every operator on the production shapes of its card, every row, as a graph from cold memory.
//!
//! `cargo run --release -p tandem-benches --bin board -- --device cuda gemm.mxfp8 n=5120,k=8192`

use clap::Parser;
use std::{error::Error, path::PathBuf, process::ExitCode};
use tandem_benches::{Filter, Report, measure, open};
use tandem_hal::{Operator, for_each_operator};

/// Times operators by captured graphs and compares them with the least time that the board needs.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// Beginning of the operators' names; all if left out
    #[arg(value_name = "OPERATOR", default_value = "")]
    operator: String,
    /// Parts that a case's line must have, such as n=5120,k=8192 or {tokens=8}
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// The provider: cuda, rocm or reference
    #[arg(long, default_value = "cuda")]
    device: String,
    /// The kernel row, or steps for decompositions; all if left out
    #[arg(long)]
    row: Option<String>,
    /// Where to write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

macro_rules! measure_all {
    ([$device:ident $filter:ident $tell:ident] $($operator:ident)*) => {
        $(if tandem_hal::$operator::ID.starts_with(&$filter.operator) {
            measure::<tandem_hal::$operator, Box<dyn Error>>(&$device, &$filter, &mut $tell)?;
        })*
    };
}

fn run(arguments: Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let Arguments { operator, parts, device, row, json } = arguments;
    // Held to the end, so that the board is not set up anew for every case.
    let held = open(&device, "", None)?;
    let mut report = Report::new(held.info());
    println!("{} ({}, {})", report.device, report.board, report.arch);
    let filter = Filter { operator, parts, row };
    let mut tell = |outcome| {
        println!("{}", report.add(outcome));
        Ok(())
    };
    for_each_operator!([measure_all], device, filter, tell);
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_vec_pretty(&report)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let (cases, wrong) = (report.cases.len(), report.wrong());
    println!("{cases} figures, {} left out, {wrong} wrong", report.skipped.len());
    Ok(if wrong == 0 && cases > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
