//! Other programs.

use std::process::Command;

/// The Python that pip belongs to.
pub(crate) fn python() -> Command {
    Command::new("python3")
}

/// Runs a command to its end; its own messages go to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("cannot start {command:?}: {error}; is it installed?"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed with {status}")) }
}

/// Runs a command to its end and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}; is it installed?"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed with {}: {}", output.status, errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
