//! Builds, and what they made.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::workspace::root;

/// One executable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// The name of its target.
    pub(super) name: &'static str,
    /// Where cargo put it.
    pub(super) path: PathBuf,
}

/// How cargo is called, and how it is told of a target.
pub(super) type Call = (&'static [&'static str], &'static str);

/// Tests, as they run here.
pub(super) const TEST: Call = (&["test", "--no-run"], "--test");
/// What is shipped or timed.
pub(super) const RELEASE: Call = (&["build", "--release"], "--bin");

/// Executables of one package.
pub(super) struct Build {
    pub(super) command: Call,
    pub(super) package: &'static str,
    pub(super) targets: &'static [&'static str],
}

/// Builds by one call, so that what packages share is built once, with a variable set; cargo's own
/// messages go to the terminal.
///
/// # Errors
/// When it fails, or when it makes another set of executables than those wanted.
pub(super) fn build(
    (arguments, kind): Call,
    builds: &[&Build],
    variable: Option<(&str, &str)>,
) -> Result<Vec<Executable>, String> {
    let targets: Vec<_> = builds.iter().flat_map(|build| build.targets).copied().collect();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command.args(builds.iter().flat_map(|build| ["-p", build.package]));
    command.args(targets.iter().flat_map(|target| [kind, target]));
    command.args(["--locked", "--message-format", "json-render-diagnostics"]);
    command.envs(variable).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed with {}", output.status));
    }
    executables(&String::from_utf8_lossy(&output.stdout), &targets)
}

/// The executables wanted among those of cargo's messages.
fn executables(messages: &str, wanted: &[&'static str]) -> Result<Vec<Executable>, String> {
    let messages: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let find = |name: &&'static str| {
        let mut made = messages.iter().filter(|message| message["target"]["name"] == *name);
        let path = made.find_map(|message| message["executable"].as_str());
        let path = path.ok_or(format!("cargo made no executable {name}"))?;
        Ok(Executable { name, path: path.into() })
    };
    wanted.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_by_name_and_missed_when_they_are_not_made() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"device"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"device"},"executable":"/t/device-1f"}
{"reason":"build-finished","success":true}"#;
        let device = Executable { name: "device", path: "/t/device-1f".into() };
        assert_eq!(executables(messages, &["device"]), Ok(vec![device]));
        let error = executables(messages, &["device", "launch"]).expect_err("one is missing");
        assert!(error.contains("launch"), "{error}");
    }

    #[test]
    fn a_build_that_fails_is_an_error() {
        let build = Build { command: RELEASE, package: "no-such-crate", targets: &["x"] };
        let error = super::build(RELEASE, &[&build], None).expect_err("no crate");
        assert!(error.contains("no-such-crate"), "{error}");
    }
}
