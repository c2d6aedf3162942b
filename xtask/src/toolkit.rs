//! Compilers of the GPU backends: no vendor installer.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tandem_rocm_toolchain::Compiler;

use crate::command::{python, run};
use crate::workspace::{make_folder, root, target_folder, write};

/// The wheels that make a CUDA compiler, with their digests. Compiler, headers and libraries are of
/// the lowest driver we support, 13.0; the disassemblers exist from 13.2 on and read older images.
const CUDA: &str = "\
nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cccl==13.0.85 --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
nvidia-cuda-cuobjdump==13.5.37 --hash=sha256:38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58
nvidia-cuda-nvdisasm==13.5.37 --hash=sha256:d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca
";

/// Installs the CUDA compiler for x86-64 Linux into `target/cuda-toolkit`, unless it is there.
///
/// Returns what to tell the user.
pub(crate) fn cuda() -> Result<String, String> {
    let folder = target_folder().join("cuda-toolkit");
    // The build script of the backend watches this folder: a new file in it starts a new build.
    let installed = folder.join("installed");
    let mark = installed.join("wheels.txt");
    let home = folder.join("nvidia").join("cu13");
    if fs::read_to_string(&mark).is_ok_and(|wheels| wheels == CUDA) {
        return Ok(format!("{} is there already", home.display()));
    }
    for part in ["nvidia", "bin"] {
        clear(&folder.join(part))?;
    }
    make_folder(&installed)?;
    let requirements = folder.join("requirements.txt");
    write(&requirements, CUDA)?;
    run(python()
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args([
            "--no-compile",
            "--upgrade",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--target",
        ])
        .arg(&folder)
        .arg("--requirement")
        .arg(&requirements))?;
    // This compiler's profile names lib64.
    #[cfg(unix)]
    std::os::unix::fs::symlink("lib", home.join("lib64"))
        .map_err(|error| format!("cannot link lib64 in {home:?}: {error}"))?;
    write(&mark, CUDA)?;
    Ok(format!("installed {}", home.display()))
}

/// Packages of Debian with a compiler of AMD kernels, its linker and its disassembler.
const ROCM: [&str; 3] = ["clang-22", "lld-22", "llvm-22"];
/// What the simulator reads objects with.
const DISASSEMBLER: &str = "llvm-objdump";

/// Finds a compiler of AMD kernels with its disassembler; where there is none, installs Debian's, if this is its root.
///
/// Returns what to tell the user.
pub(crate) fn rocm() -> Result<String, String> {
    if let Ok(version) = rocm_compiler() {
        return Ok(format!("{version} is there already"));
    }
    let installed = update_packages().and_then(|()| install_packages());
    match (installed, rocm_compiler()) {
        (_, Ok(version)) => Ok(format!("installed {version}")),
        (outcome, Err(why)) => {
            let failed = outcome.err().map_or(String::new(), |error| format!("{error}\n"));
            Err(format!(
                "{failed}{why}\nAny of these has one:\n\
                 * Debian's packages: apt-get install {}\n\
                 * clang, lld and llvm 20 or later of another distribution, or of apt.llvm.org\n\
                 * ROCm 7 or later in /opt/rocm\n\
                 * TANDEM_ROCM_CLANG=PATH names a clang that has its lld and {DISASSEMBLER} beside it\n\
                 Without one, builds use the committed objects of unchanged sources, and the simulator's tests do not run.",
                ROCM.join(" ")
            ))
        }
    }
}

/// The version of a compiler that has all its parts.
fn rocm_compiler() -> Result<String, String> {
    let compiler = Compiler::find(root())?;
    match compiler.beside(DISASSEMBLER) {
        Some(_) => Ok(compiler.version),
        None => Err(format!("{} has no {DISASSEMBLER} beside it", compiler.version)),
    }
}

fn update_packages() -> Result<(), String> {
    run(apt().args(["-qq", "update"]))
}

fn install_packages() -> Result<(), String> {
    run(apt().args(["-qq", "install", "--yes", "--no-install-recommends"]).args(ROCM))
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
    apt
}

fn clear(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {folder:?}: {error}"))
}
