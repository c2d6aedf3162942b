//! The conformance suite as a test program.
//!
//! `cargo test -p tandem-tests --test conformance -- [filter] [--seed N] [--cases N] [--edges N]
//! [--case LINE] [--record FILE]`

use libtest_mimic::Arguments;
use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tandem_tests::{
    conformance::{
        arguments::settings,
        lane::Lane,
        record::{self, Origin},
        suite::{Outcome, Suite},
        xfail,
    },
    faulty,
};

/// The commit of a clean working tree: `cargo xtask carry` says which, and nobody else does.
const COMMIT: Option<&str> = option_env!("TANDEM_COMMIT");

/// Writes the record that was asked for.
fn write_record(suite: &Suite, outcome: &Outcome, lanes: &[Lane], at: SystemTime) -> bool {
    let Some(path) = &suite.settings.record else { return true };
    let origin = Origin { at, commit: COMMIT };
    let lines = record::lines(&outcome.summary, lanes, &suite.settings, origin);
    let written = std::fs::write(path, lines.join("\n") + "\n");
    match &written {
        Ok(()) => println!("{} rows recorded in {}", lines.len(), path.display()),
        Err(why) => println!("cannot write {}: {why}", path.display()),
    }
    written.is_ok()
}

fn main() -> ExitCode {
    let began = SystemTime::now();
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let parsed = settings(arguments, |name| std::env::var(name).ok());
    let expected = xfail::List::parse(include_str!("xfail.toml"));
    let ((settings, rest), expected) = match (parsed, expected) {
        (Ok(parsed), Ok(expected)) => (parsed, Arc::new(expected)),
        (Err(why), _) | (_, Err(why)) => {
            eprintln!("conformance: {why}");
            return ExitCode::from(2);
        }
    };
    let arguments = Arguments::from_iter(std::iter::once(program).chain(rest));
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let suite = Suite { settings, expected, outcome: outcome.clone() };
    let (lanes, skipped) = Lane::all();
    let mut trials: Vec<_> = lanes.iter().flat_map(|lane| suite.trials(lane)).collect();
    if suite.settings.case.is_none() {
        trials.extend(faulty::trial::trials(&suite.settings));
    }
    let listing = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if listing {
        return ExitCode::SUCCESS;
    }
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", outcome.summary);
    for reason in skipped {
        println!("{reason}");
    }
    println!("seed {}, {} drawn cases a row", suite.settings.seed, suite.settings.cases);
    let passes = outcome.unexpected_passes();
    for row in &passes {
        println!("{row} is expected to fail and passes: take it out of tests/xfail.toml");
    }
    // So that a board whose driver is gone does not look like a run without failures.
    let hosted = |lane: &Lane| ["reference", "emulated"].contains(&lane.info.board.as_str());
    let required = std::env::var("TANDEM_GPU_REQUIRED").is_ok_and(|value| value == "1");
    let missing = required && lanes.iter().all(hosted);
    if missing {
        println!("TANDEM_GPU_REQUIRED=1, but there is no board");
    }
    let recorded = write_record(&suite, &outcome, &lanes, began);
    if conclusion.has_failed() || !passes.is_empty() || missing || !recorded {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
