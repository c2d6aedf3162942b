//! Running the binary.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Output};

/// What a run left behind.
pub struct Finished {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

/// Runs the binary to its end.
pub fn tandem(arguments: &[&str]) -> Finished {
    finish(Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments))
}

/// Runs the binary with a folder on the loader's path.
pub fn tandem_with_library_path(arguments: &[&str], folder: &Path) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    finish(command.args(arguments).env("LD_LIBRARY_PATH", folder))
}

/// Runs the binary with this on standard input.
pub fn tandem_with_input(arguments: &[&str], input: &[u8]) -> Finished {
    let mut file = tempfile::tempfile().expect("a file for standard input");
    file.write_all(input).and_then(|()| file.rewind()).expect("a file takes bytes");
    finish(Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments).stdin(file))
}

fn finish(command: &mut Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("the binary writes UTF-8");
    let code = status.code().expect("no signal ends the binary");
    Finished { code, output: text(stdout), errors: text(stderr) }
}

impl Finished {
    /// The output of a run that succeeded and complained about nothing.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.errors.as_str()), (0, ""), "{}", self.output);
        self.output
    }

    /// A run that failed with this code and one line that has all `parts`.
    #[track_caller]
    pub fn refused(self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.output, self.errors);
        assert_eq!(self.errors.lines().count(), 1, "{}", self.errors);
        assert!(self.errors.starts_with("error: "), "{}", self.errors);
        for part in parts {
            assert!(self.errors.contains(part), "{part}: {}", self.errors);
        }
    }
}
