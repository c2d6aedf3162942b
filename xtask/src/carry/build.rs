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

/// One call of cargo.
pub(super) struct Build {
    pub(super) arguments: &'static [&'static str],
    /// How cargo is told of a target: `--test` or `--bin`.
    pub(super) kind: &'static str,
    pub(super) targets: &'static [&'static str],
}

impl Build {
    /// Builds with a variable set; cargo's own messages go to the terminal.
    ///
    /// # Errors
    /// When it fails, or when it makes another set of executables than those wanted.
    pub(super) fn run(&self, variable: Option<(&str, &str)>) -> Result<Vec<Executable>, String> {
        let Build { arguments, kind, targets } = *self;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(root()).args(arguments);
        command.args(targets.iter().flat_map(|target| [kind, target]));
        command.args(["--locked", "--message-format", "json-render-diagnostics"]);
        command.envs(variable).stderr(Stdio::inherit());
        let output =
            command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?} failed with {}", output.status));
        }
        executables(&String::from_utf8_lossy(&output.stdout), targets)
    }
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
        let build =
            Build { arguments: &["build", "-p", "no-such-crate"], kind: "--bin", targets: &["x"] };
        let error = build.run(None).expect_err("no crate");
        assert!(error.contains("no-such-crate"), "{error}");
    }
}
