//! Executables for a machine with a board and no cargo.

mod build;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{output, run};
use crate::workspace::{make_folder, root, write};
use build::{Build, Executable, RELEASE, TEST, build};

/// What can be carried: a name for the command line and for `run.sh`.
struct Part {
    name: &'static str,
    builds: &'static [Build],
    /// A folder that goes along.
    folder: Option<(&'static str, &'static str)>,
    /// The boards that it is for, if not for all.
    device: Option<&'static str>,
    /// Steps of `run.sh`.
    steps: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        name: "driver",
        builds: &[Build {
            command: TEST,
            package: "tandem-cuda",
            targets: &["device", "launch", "products", "group", "fault"],
        }],
        folder: None,
        device: Some("cuda"),
        steps: &["./device", "./launch", "./group", "./fault"],
    },
    Part {
        name: "tests",
        builds: &[Build { command: TEST, package: "tandem-tests", targets: &["conformance"] }],
        folder: None,
        device: None,
        steps: &[
            "./conformance \"$DEVICE:\" --skip none/table --cases 40 --test-threads 4 --record \"$RECORD\"",
        ],
    },
    Part {
        name: "product",
        builds: &[Build { command: RELEASE, package: "tandem-cli", targets: &["tandem"] }],
        folder: Some(("tests/goldens", "goldens")),
        device: None,
        steps: &[
            "./tandem doctor",
            "./tandem verify --goldens goldens --device \"$DEVICE:0\"",
            "./tandem bench --device \"$DEVICE:0\"",
        ],
    },
    Part {
        name: "benches",
        builds: &[Build { command: RELEASE, package: "tandem-benches", targets: &["board"] }],
        folder: None,
        device: None,
        steps: &["./board --device \"$DEVICE\" --json board.json"],
    },
];

/// The variable that tells a build its commit.
const COMMIT: &str = "TANDEM_COMMIT";

/// Builds the parts named, all if none is, and puts what they need into `folder`.
///
/// # Errors
/// What does not build; then nothing is put there.
pub(crate) fn carry(folder: &str, names: &[&str]) -> Result<String, String> {
    let unknown = names.iter().find(|name| PARTS.iter().all(|part| part.name != **name));
    if let Some(name) = unknown {
        let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("there is no part '{name}'; there are {}", known.join(", ")));
    }
    let parts: Vec<&Part> =
        PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name)).collect();
    let commit = commit()?;
    let mut executables = vec![];
    let variable = commit.as_deref().map(|id| (COMMIT, id));
    for command in [TEST, RELEASE] {
        let builds = parts.iter().flat_map(|part| part.builds);
        let builds: Vec<&Build> = builds.filter(|build| build.command == command).collect();
        if !builds.is_empty() {
            executables.extend(build(command, &builds, variable)?);
        }
    }
    if self::commit()? != commit {
        return Err("the working tree changed while it was built; start again".into());
    }
    put(Path::new(folder), &parts, &executables, commit.as_deref())
}

/// The commit that the working tree is, to the last byte.
fn commit() -> Result<Option<String>, String> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root()).args(arguments));
    let changes = git(&["status", "--porcelain"])?;
    let head = git(&["rev-parse", "HEAD"])?;
    Ok(changes.trim().is_empty().then(|| head.trim().to_owned()))
}

/// Fills the folder; returns what to tell the user.
fn put(
    folder: &Path,
    parts: &[&Part],
    executables: &[Executable],
    commit: Option<&str>,
) -> Result<String, String> {
    make_folder(folder)?;
    let mut report = String::new();
    let mut tell = |name: &str, bytes: u64| {
        writeln!(report, "{:>8.1} MiB  {name}", bytes as f64 / f64::from(1 << 20))
            .expect("strings grow");
    };
    for Executable { name, path } in executables {
        let to = folder.join(name);
        run(Command::new("strip").arg("-o").args([&to, path]))?;
        tell(name, bytes_of(&to)?);
    }
    for (from, name) in parts.iter().filter_map(|part| part.folder) {
        let (from, to) = (root().join(from), folder.join(name));
        make_folder(&to)?;
        run(Command::new("cp").arg("-r").arg(from.join(".")).arg(&to))?;
        tell(name, bytes_of(&to)?);
    }
    write(&folder.join("run.sh"), &script(parts, commit))?;
    let origin = match commit {
        Some(commit) => format!("of commit {commit}"),
        None => "with changes that are not committed: records of it prove nothing".into(),
    };
    Ok(format!("{report}{} {origin}; there: bash run.sh", folder.display()))
}

/// What a file or the files of a folder take.
fn bytes_of(path: &Path) -> Result<u64, String> {
    let fail = |error: std::io::Error| format!("cannot read {path:?}: {error}");
    let facts = fs::metadata(path).map_err(fail)?;
    if !facts.is_dir() {
        return Ok(facts.len());
    }
    let entries = fs::read_dir(path).map_err(fail)?;
    entries.map(|entry| bytes_of(&entry.map_err(fail)?.path())).sum()
}

/// `run.sh`: every part, or those that its arguments name.
fn script(parts: &[&Part], commit: Option<&str>) -> String {
    let names: Vec<_> = parts.iter().map(|part| part.name).collect();
    let (names, commit) = (names.join(" "), commit.unwrap_or("changes that are not committed"));
    let mut text = format!(
        "#!/usr/bin/env bash
# Runs on a machine with a board what was built of {commit}.
#
#   bash run.sh [PART...]      {names}; all if none is named
#
# Boards are those of $DEVICE, cuda or rocm. Goes on after a failure, and ends with one. The record of the conformance
# run goes to $RECORD.
set -uo pipefail
cd \"$(dirname \"$0\")\"
export TANDEM_GPU_REQUIRED=1
: \"${{RECORD:=record.jsonl}}\" \"${{DEVICE:=cuda}}\"
failed=()
step() {{
    local start=$SECONDS
    echo \"== $*\"
    \"$@\" || failed+=(\"$*\")
    echo \"== $((SECONDS - start)) s\"
}}
for part in ${{*:-{names}}}; do
    case $part in
"
    );
    for Part { name, device, steps, .. } in parts {
        let only = device.map(|device| format!("        [ \"$DEVICE\" = {device} ] || continue\n"));
        let steps: Vec<_> = steps.iter().map(|step| format!("        step {step}\n")).collect();
        write!(text, "    {name})\n{}{}        ;;\n", only.unwrap_or_default(), steps.concat())
            .expect("strings grow");
    }
    text.push_str(
        "    *) failed+=(\"there is no part '$part'\") ;;
    esac
done
[ ${#failed[@]} -eq 0 ] || { printf 'FAILED: %s\\n' \"${failed[@]}\"; exit 1; }
echo \"all passed\"
",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the script for boards of `device` in a folder where every program answers `answer`.
    fn outcome(answer: &str, device: &str, arguments: &[&str]) -> (bool, String) {
        let parts: Vec<&Part> = PARTS.iter().collect();
        let folder = std::env::temp_dir().join(format!("carry-{}-{answer}", std::process::id()));
        make_folder(&folder).expect("a temporary folder");
        write(&folder.join("run.sh"), &script(&parts, Some("abc"))).expect("a file");
        for name in parts.iter().flat_map(|part| part.builds).flat_map(|build| build.targets) {
            let path = folder.join(name);
            write(&path, &format!("#!/bin/sh\necho {name} $* $TANDEM_GPU_REQUIRED\n{answer}\n"))
                .expect("a file");
            run(Command::new("chmod").arg("+x").arg(path)).expect("a mode");
        }
        let mut bash = Command::new("bash");
        bash.arg(folder.join("run.sh")).args(arguments).env("DEVICE", device);
        let ran = bash.output().expect("bash runs");
        fs::remove_dir_all(folder).expect("a temporary folder");
        (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    #[test]
    fn the_script_runs_what_is_named_and_fails_when_any_does() {
        let (passed, text) = outcome("true", "cuda", &[]);
        assert!(passed, "{text}");
        for said in [
            "device 1",
            "fault 1",
            "conformance cuda: --skip",
            "verify --goldens goldens --device cuda:0 1",
            "board --device cuda --json board.json 1",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let (passed, text) = outcome("true", "rocm", &[]);
        assert!(passed && text.contains("conformance rocm: --skip"), "{text}");
        assert!(!text.contains("./fault"), "{text}");
        let (passed, text) = outcome("true", "cuda", &["product"]);
        assert!(
            passed && text.contains("tandem doctor") && !text.contains("conformance"),
            "{text}"
        );
        let (passed, text) = outcome("false", "cuda", &["driver", "tests"]);
        assert!(!passed && text.contains("--record record.jsonl"), "{text}");
        assert!(text.contains("FAILED: ./device\nFAILED: ./launch"), "{text}");
        assert!(!outcome("true", "cuda", &["none"]).0);
    }

    #[test]
    fn parts_that_do_not_exist_are_refused_before_anything_is_built() {
        let folder = std::env::temp_dir().join(format!("carry-{}-none", std::process::id()));
        let error = carry(&folder.to_string_lossy(), &["bench"]).expect_err("no such part");
        assert!(error.contains("driver, tests, product, benches"), "{error}");
        assert!(!folder.exists());
    }
}
