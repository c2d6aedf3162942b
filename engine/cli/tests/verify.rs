//! `tandem verify` from outside: its verdict and its exit code.

mod tandem;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tandem::tandem;
use tempfile::TempDir;

const GOLDENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens");

/// A folder with one golden file.
fn folder(name: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), bytes).expect("a copy");
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

#[test]
fn every_gate_holds_on_the_demo() {
    let run = tandem(&["verify", "--goldens", GOLDENS]);
    assert_eq!(run.code, 0, "{}{}", run.output, run.errors);
    let verdict = run.output.lines().last().expect("a verdict");
    assert!(verdict.starts_with("PASSED: ") && verdict.ends_with(" gates hold"), "{verdict}");
    for gate in ["window_kv", "draft hidden", "vision features", "log-prob gap", "held_out"] {
        assert!(run.output.contains(gate), "{gate} was compared: {}", run.output);
    }
}

#[test]
fn another_golden_draft_fails_and_is_named() {
    let name = "text_17.safetensors";
    let mut bytes = fs::read(Path::new(GOLDENS).join(name)).expect("a golden file");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let tensors: Value = serde_json::from_slice(&bytes[8..8 + header]).expect("a header");
    let start = tensors["draft_tokens"]["data_offsets"][0].as_u64().expect("an offset") as usize;
    bytes[8 + header + start] ^= 1;
    let goldens = folder(name, &bytes);
    let run = tandem(&["verify", "--goldens", text(goldens.path())]);
    assert_eq!(run.code, 1, "{}{}", run.output, run.errors);
    let verdict = run.output.lines().last().expect("a verdict");
    assert!(
        verdict.starts_with("FAILED: ") && verdict.contains("text_17: clear draft tokens"),
        "{verdict}"
    );
}
