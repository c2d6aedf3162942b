//! What goes to the terminal: text to standard output, one line for an error.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tandem_engine::{Error, Result};

/// Writes `text` to standard output at once.
///
/// # Errors
/// When standard output cannot take it, or its reader has gone away and the work may end.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    let path = "standard output".to_owned();
    let failed = |source| Error::Io { action: "write", path, source };
    write!(out, "{text}").and_then(|()| out.flush()).map_err(failed)
}

/// Writes the one line of an error and gives the exit code. A reader that went away wanted no more:
/// that ends a command quietly.
pub(crate) fn report(error: &Error) -> ExitCode {
    match error {
        Error::Io { action: "write", source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        _ => {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Writes a message as one line to standard error, whatever names it carries.
pub(crate) fn complain(message: &str) {
    aside(format_args!("error: {}", one_line(message)));
}

/// A remark on an answer.
pub(crate) fn note(remark: &str) {
    aside(format_args!("[{remark}]"));
}

/// A line on standard error, beside the output. Nothing depends on its being read.
pub(crate) fn aside(line: impl Display) {
    let _read = writeln!(io::stderr(), "{line}");
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
