//! Running the binary.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

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

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Finished {
    finished(command.output().expect("the binary starts"))
}

/// How lines begin that a busy machine adds, as loading takes long.
pub const PROGRESS: &str = "loading weights: ";

/// The same of a batch.
const ANSWERING: &str = "answering requests: ";

/// How lines begin that a machine adds whose first device lacks operators.
const PASSED_OVER: &str = "[passed over ";

/// What a run left behind, without lines that the machine adds.
pub fn finished(Output { status, stdout, stderr }: Output) -> Finished {
    let text = |bytes| String::from_utf8(bytes).expect("the binary writes UTF-8");
    let lines = text(stderr);
    let begins = [PROGRESS, ANSWERING, PASSED_OVER];
    let added = |line: &str| begins.iter().any(|begin| line.starts_with(begin));
    let errors = lines.split_inclusive('\n').filter(|line| !added(line));
    let code = status.code().expect("no signal ends the binary");
    Finished { code, output: text(stdout), errors: errors.collect() }
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

/// A copy of the demo checkpoint, to be spoilt.
pub struct Copy(TempDir);

impl Copy {
    /// Whole.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let demo = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/demo"));
        for entry in demo.expect("the demo's files") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a file");
            fs::copy(&path, folder.path().join(name)).expect("a copy");
        }
        Self(folder)
    }

    /// The folder, as an argument.
    pub fn path(&self) -> &str {
        self.0.path().to_str().expect("a UTF-8 path")
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Changes a file's bytes.
    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.file(name)).expect("the file");
        change(&mut bytes);
        fs::write(self.file(name), bytes).expect("the file is written");
    }

    /// Sets a value of `config.json`, named by a JSON pointer.
    pub fn configure(&self, pointer: &str, value: Value) {
        self.edit("config.json", |bytes| {
            let mut config: Value = serde_json::from_slice(bytes).expect("JSON");
            *config.pointer_mut(pointer).expect(pointer) = value;
            *bytes = config.to_string().into_bytes();
        });
    }

    /// Overwrites the first bytes of a tensor.
    pub fn spoil(&self, tensor: &str, with: &[u8]) {
        let (shard, start) = (1..=5)
            .map(|shard| format!("model-0000{shard}-of-00005.safetensors"))
            .find_map(|shard| {
                let bytes = fs::read(self.file(&shard)).expect("a shard");
                tensor_start(&bytes, tensor).map(|start| (shard, start))
            })
            .expect(tensor);
        self.edit(&shard, |bytes| bytes[start..start + with.len()].copy_from_slice(with));
    }
}

/// The first byte of a tensor in a shard.
fn tensor_start(shard: &[u8], name: &str) -> Option<usize> {
    let header_bytes = u64::from_le_bytes(shard.get(..8)?.try_into().ok()?) as usize;
    let header: Value = serde_json::from_slice(shard.get(8..8 + header_bytes)?).ok()?;
    let start = header.get(name)?.get("data_offsets")?.get(0)?.as_u64()?;
    Some(8 + header_bytes + start as usize)
}
