//! LLVM's disassembler: what encodings mean is its word, not ours.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{LoadError, Target};

/// Names under which the disassembler is looked for, and the oldest LLVM that knows gfx950.
const NAMES: [&str; 6] = [
    "llvm-objdump-22",
    "llvm-objdump-21",
    "llvm-objdump-20",
    "llvm-objdump-23",
    "llvm-objdump-24",
    "llvm-objdump",
];
const OLDEST: u32 = 20;

/// The text of a code object's instructions, with addresses and encodings.
pub(crate) fn disassemble(object: &[u8], target: Target) -> Result<String, LoadError> {
    static PROGRAM: OnceLock<Option<String>> = OnceLock::new();
    let program = PROGRAM.get_or_init(find).as_ref().ok_or(LoadError::NoDisassembler)?;
    let failed = |reason: String| LoadError::Disassembler { program: program.clone(), reason };
    let mut child = Command::new(program)
        .args(["--disassemble", "--disassemble-zeroes", "-"])
        .arg(format!("--mcpu={target}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    // The object is read to its end before anything is printed, so one thread does.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(object));
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.lines().next().unwrap_or("no message").to_owned()));
    }
    written.map_err(|e| failed(e.to_string()))?;
    String::from_utf8(output.stdout).map_err(|e| failed(e.to_string()))
}

fn find() -> Option<String> {
    let named = std::env::var("TANDEM_LLVM_OBJDUMP").ok();
    let names = NAMES.map(str::to_owned);
    named.into_iter().chain(names).find(|name| version(name).is_some_and(|v| v >= OLDEST))
}

/// The major version that the program tells.
fn version(program: &str) -> Option<u32> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, rest) = text.split_once("LLVM version ")?;
    rest.split('.').next()?.trim().parse().ok()
}
