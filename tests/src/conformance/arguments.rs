//! The suite's own arguments; all others are those of the standard harness.

use super::case::Case;
use std::{path::PathBuf, str::FromStr};

/// Seed of a run that names none, so that two runs of one tree test the same.
const SEED: u64 = 20_261_129;
/// Drawn cases a row.
const CASES: u32 = 6;

/// How a run is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where random numbers start: `--seed`, or `TANDEM_SEED`.
    pub seed: u64,
    /// Drawn cases a row: `--cases`, or `TANDEM_CASES`.
    pub cases: u32,
    /// The card's own cases a row at most: `--edges`, or `TANDEM_EDGES`; all of them where nothing is said.
    pub edges: Option<u32>,
    /// The one case to run: `--case '<descriptor line> <extents line>'`.
    pub case: Option<Case>,
    /// Where the run's record goes: `--record FILE`.
    pub record: Option<PathBuf>,
}

/// Take the suite's arguments out of the command line.
///
/// # Errors
/// Which argument is wrong, and how it is given.
pub fn settings(
    arguments: impl Iterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(Settings, Vec<String>), String> {
    let (mut seed, mut cases) = (variable("TANDEM_SEED"), variable("TANDEM_CASES"));
    let (mut edges, mut line, mut record) = (variable("TANDEM_EDGES"), None, None);
    let mut rest = vec![];
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_string(), Some(value.to_string())),
            None => (argument.clone(), None),
        };
        let target = match name.as_str() {
            "--seed" => &mut seed,
            "--cases" => &mut cases,
            "--edges" => &mut edges,
            "--case" => &mut line,
            "--record" => &mut record,
            _ => {
                rest.push(argument);
                continue;
            }
        };
        *target = Some(value.or_else(|| arguments.next()).ok_or(format!("{name} needs a value"))?);
    }
    let seed = number("--seed", seed)?.unwrap_or(SEED);
    let cases = number("--cases", cases)?.unwrap_or(CASES);
    let edges = number("--edges", edges)?;
    if edges.is_some() && record.is_some() {
        return Err("--record takes runs of every case; leave --edges out".into());
    }
    let case = line.map(|line| Case::parse(&line, seed)).transpose()?;
    Ok((Settings { seed, cases, edges, case, record: record.map(PathBuf::from) }, rest))
}

fn number<T: FromStr>(name: &str, text: Option<String>) -> Result<Option<T>, String> {
    let parse = |text: String| {
        text.parse().map_err(|_| format!("{name} takes a number within its range, not '{text}'"))
    };
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<(Settings, Vec<String>), String> {
        let arguments = arguments.iter().map(ToString::to_string);
        settings(arguments, |name| (name == "TANDEM_CASES").then(|| "3".into()))
    }

    #[test]
    fn own_arguments_leave_the_rest() {
        let (settings, rest) = parse(&[
            "gemm",
            "--seed=7",
            "--exact",
            "--edges=2",
            "--case",
            "quant.cast{to=e4m3fn/ue8m0/1x32,width=32} {tokens=2}",
        ])
        .expect("well formed");
        assert_eq!((settings.seed, settings.cases, settings.edges), (7, 3, Some(2)));
        assert_eq!(rest, ["gemm", "--exact"]);
        let case = settings.case.expect("given");
        assert_eq!((case.op.id(), case.seed), ("quant.cast", 7));
        let (settings, _) = parse(&["--record", "run.jsonl"]).expect("well formed");
        assert_eq!((settings.record, settings.edges), (Some("run.jsonl".into()), None));
    }

    #[test]
    fn bad_arguments_are_named() {
        assert!(parse(&["--seed", "x"]).expect_err("no number").contains("--seed"));
        assert!(parse(&["--cases"]).expect_err("no value").contains("--cases"));
        assert!(parse(&["--edges", "-1"]).expect_err("no count").contains("--edges"));
        assert!(parse(&["--case", "gemm"]).is_err());
        let part = parse(&["--edges", "1", "--record", "run.jsonl"]).expect_err("a part");
        assert!(part.contains("every case"), "{part}");
    }
}
