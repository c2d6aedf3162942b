//! The committed objects are what clang makes of the sources beside them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tandem_gfxsim::{CodeObject, LoadError};

use crate::support::{TARGETS, bytes};

const SOURCES: [&str; 5] = ["arithmetic", "coherence", "faulty", "groups", "matrices"];
/// The compiler that made the committed objects; another one's differ.
const COMPILER: &str = "clang-22";
const VERSION: &str = "22.1.8";

fn compile(source: &Path, target: &str, to: &Path) -> bool {
    let status = Command::new(COMPILER)
        .args([
            "-x",
            "hip",
            "--cuda-device-only",
            "-nogpuinc",
            "-nogpulib",
            "--no-gpu-bundle-output",
        ])
        .args(["-std=c++20", "-O3", "-fuse-cuid=none", &format!("--offload-arch={target}"), "-o"])
        .args([to, source])
        .status();
    status.is_ok_and(|status| status.success())
}

/// With TANDEM_UPDATE_OBJECTS set the objects are written instead.
#[test]
fn objects_are_what_the_compiler_makes() {
    let version = Command::new(COMPILER).arg("--version").output();
    let is_ours =
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION));
    if !is_ours {
        println!("SKIPPED objects: they were made by {COMPILER} {VERSION}, which is not installed");
        return;
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for name in SOURCES {
        for target in TARGETS {
            let source = folder.join("kernels").join(format!("{name}.hip"));
            let committed = folder.join("objects").join(format!("{name}.{target}.hsaco"));
            let to = built.join(format!("{name}.{target}.hsaco"));
            assert!(compile(&source, target, &to), "{name} does not compile for {target}");
            let made = std::fs::read(&to).expect("what was compiled");
            if std::env::var_os("TANDEM_UPDATE_OBJECTS").is_some() {
                std::fs::write(&committed, &made).expect("the objects' folder can be written");
            }
            assert!(
                made == bytes(name, target),
                "{name}.{target}.hsaco is stale: run with TANDEM_UPDATE_OBJECTS=1"
            );
        }
    }
}

/// Everything that the backend ships decodes: no instruction is met for the first time when it runs.
#[test]
fn all_that_ships_is_understood() {
    let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../objects");
    let mut count = 0;
    for folder in TARGETS.map(|target| shipped.join(target)) {
        for entry in std::fs::read_dir(&folder).expect("the folder of a target") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a file");
            match CodeObject::load(&bytes) {
                Ok(object) => assert!(object.kernels().next().is_some(), "{}", path.display()),
                Err(LoadError::NoDisassembler) => {
                    println!("SKIPPED objects: {}", LoadError::NoDisassembler);
                    return;
                }
                Err(other) => panic!("{}: {other}", path.display()),
            }
            count += 1;
        }
    }
    assert!(count > 0, "nothing is shipped");
}
