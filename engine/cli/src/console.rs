//! What goes to the terminal: text to standard output, one line for an error.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tandem_engine::{Error, Result};

/// Writes `text` to standard output at once.
///
/// # Errors
/// When standard output cannot take it. A reader that has gone away is no error: the rest is not
/// wanted.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Io { action: "write", path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

/// Writes the one line of an error and gives the exit code.
pub(crate) fn report(error: &Error) -> ExitCode {
    complain(&error.to_string());
    ExitCode::from(error.exit_code())
}

/// Writes a message as one line to standard error, whatever names it carries.
pub(crate) fn complain(message: &str) {
    eprintln!("error: {}", one_line(message));
}

/// A remark beside the output.
pub(crate) fn note(remark: &str) {
    eprintln!("[{remark}]");
}

/// A message without characters that would move the cursor.
fn one_line(message: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    message.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn names_cannot_break_the_line() {
        assert_eq!(one_line("a\nb\u{1b}[2J ä"), "a\\nb\\u{1b}[2J ä");
    }
}
