//! Which clang compiles the kernels.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use crate::source::{HEADERS, Source};
use crate::{Kernel, TARGETS, describe};

/// The first release that knows every target.
const OLDEST: u32 = 20;
/// The newest release whose name is looked for.
const NEWEST: u32 = 26;

/// Flags of every object.
///
/// No contraction: a product and a sum are rounded one after the other unless the source says `fma`, as the
/// operators' pages do. The fifth version of code objects, which every runtime that knows these parts
/// reads. No hoisting of constants out of loops and no pointers that go along with them: both take more
/// scalar registers than there are. No preparation of code generation, which sinks casts of pointers into the
/// branch that picks one: the pass that structures branches (of LLVM 22 at least) then takes the other pointer where
/// two tests lead to it. No identifier of the compilation and no symbols: the bytes depend on
/// source, flags and compiler alone.
pub(crate) const FLAGS: &[&str] = &[
    "-x",
    "hip",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-nogpuinc",
    "-nogpulib",
    "-std=c++20",
    "-O3",
    "-ffp-contract=off",
    "-mcode-object-version=5",
    "-mllvm",
    "-disable-machine-licm",
    "-mllvm",
    "-disable-lsr",
    "-mllvm",
    "-disable-cgp",
    "-Wall",
    "-Werror",
    "-Wno-pass-failed",
    "-Wno-unused-function",
    "-fuse-cuid=none",
    "-Xoffload-linker",
    "--strip-all",
];

/// A clang that knows every target, with its linker.
#[derive(Debug)]
pub struct Compiler {
    path: PathBuf,
    /// What it says of itself.
    pub version: String,
}

impl Compiler {
    /// What decides which one is found, for build scripts to watch.
    pub const ENVIRONMENT: [&str; 2] = ["TANDEM_ROCM_CLANG", "PATH"];

    /// By `TANDEM_ROCM_CLANG`, then `cargo xtask toolkit rocm`, `PATH` and the usual folders. An empty
    /// `TANDEM_ROCM_CLANG` asks for none.
    ///
    /// # Errors
    /// Why there is none, for users: one line.
    pub fn find(workspace: &Path) -> Result<Compiler, String> {
        if let Some(named) = env::var_os("TANDEM_ROCM_CLANG") {
            if named.is_empty() {
                return Err("TANDEM_ROCM_CLANG is empty".into());
            }
            return Compiler::at(PathBuf::from(named))
                .map_err(|why| format!("TANDEM_ROCM_CLANG: {why}"));
        }
        let mut reasons = vec![];
        for file in candidates(workspace) {
            match Compiler::at(file) {
                Ok(compiler) => return Ok(compiler),
                Err(why) => reasons.push(why),
            }
        }
        reasons.push(format!("no clang {OLDEST} or later was found"));
        Err(reasons.join("; "))
    }

    /// The one at a path.
    ///
    /// # Errors
    /// What it lacks.
    pub fn at(path: PathBuf) -> Result<Compiler, String> {
        let said = |arguments: &[&str]| {
            let output = Command::new(&path).args(arguments).output();
            let output =
                output.map_err(|error| format!("{} does not run: {error}", path.display()))?;
            Ok::<_, String>(text(&output))
        };
        let version = said(&["--version"])?.lines().next().unwrap_or_default().trim().to_owned();
        let parts = said(&["--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])?;
        let known = |target: &&str| parts.split_whitespace().any(|word| word == *target);
        if let Some(unknown) = TARGETS.iter().find(|target| !known(target)) {
            return Err(format!(
                "{} ({version}) does not know {unknown}, as clang {OLDEST} does",
                path.display()
            ));
        }
        let compiler = Compiler { path, version };
        if compiler.beside("lld").is_none() {
            return Err(format!("{} has no lld beside it; install it", compiler.path.display()));
        }
        Ok(compiler)
    }

    /// Another program of its LLVM, if that is installed.
    pub fn beside(&self, program: &str) -> Option<PathBuf> {
        let ask = format!("-print-prog-name={program}");
        let output = Command::new(&self.path).arg(ask).output().ok()?;
        let file = PathBuf::from(text(&output).trim());
        file.is_absolute().then_some(file)
    }

    /// Makes the object of a source for a target, and says what its kernels need.
    ///
    /// # Errors
    /// What the compiler said, with the name of the source.
    pub fn compile(
        &self,
        workspace: &Path,
        source: &Source,
        target: &str,
        to: &Path,
    ) -> Result<Vec<Kernel>, String> {
        let fail = |why: String| format!("kernel {} for {target}: {why}", source.name);
        let mut command = Command::new(&self.path);
        command
            .args(FLAGS)
            .arg(format!("--offload-arch={target}"))
            .args(HEADERS.map(|folder| format!("-I{}", workspace.join(folder).display())))
            .arg(&source.path)
            .arg("-o")
            .arg(to);
        let output = command.output().map_err(|error| fail(error.to_string()))?;
        if !output.status.success() {
            return Err(fail(text(&output)));
        }
        let bytes = fs::read(to).map_err(|error| fail(error.to_string()))?;
        describe(&bytes, target).map_err(fail)
    }
}

/// Files that may be one, the best first.
fn candidates(workspace: &Path) -> Vec<PathBuf> {
    let mut files = vec![workspace.join("target/rocm-toolkit/clang")];
    let path = env::var_os("PATH").unwrap_or_default();
    let releases = (OLDEST..=NEWEST).rev();
    for release in releases.clone() {
        files.extend(env::split_paths(&path).map(|bin| bin.join(format!("clang-{release}"))));
        files.push(format!("/usr/lib/llvm-{release}/bin/clang").into());
    }
    files.extend(env::split_paths(&path).map(|bin| bin.join("clang")));
    files.push("/opt/rocm/llvm/bin/clang".into());
    files.retain(|file| file.is_file());
    files
}

/// All that a program printed.
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_compiler_says_so_in_a_line() {
        for path in ["/nonexistent/clang", "/bin/true"] {
            let why = Compiler::at(path.into()).unwrap_err();
            assert!(why.starts_with(path) && why.lines().count() == 1, "{why}");
        }
    }
}
