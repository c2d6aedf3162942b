//! Which nvcc compiles the kernels.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use crate::source::Source;

/// The release whose machine code every driver we support runs.
const RELEASE: &str = "13.0";

/// Flags of every kernel. No contraction: a product and a sum are rounded one after the other unless
/// the source says `fma`, as the operators' pages do.
pub(crate) const FLAGS: &[&str] = &["-std=c++20", "-O3", "--cubin", "-fmad=false"];

/// What makes the assembler tell of registers, spills and local memory.
const REPORT: &[&str] = &["-Xptxas", "-v,-warn-spills,-warn-lmem-usage"];

/// An nvcc of the right release.
pub(crate) struct Compiler {
    path: PathBuf,
    /// What it says of itself, part of every image's key.
    pub(crate) version: String,
    /// Flags that nvcc itself takes from the environment.
    pub(crate) appended: String,
}

impl Compiler {
    /// By `NVCC`, then `CUDA_HOME` and `CUDA_PATH`, `cargo xtask toolkit cuda`, the usual folder and
    /// `PATH`. An empty `NVCC` asks for none.
    ///
    /// # Errors
    /// Why there is none, for users.
    pub(crate) fn find(crate_folder: &Path) -> Result<Compiler, String> {
        for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "NVCC_APPEND_FLAGS"] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        let workspace = crate_folder.parent().expect("the crate is a folder of the workspace");
        let toolkit = workspace.join("target").join("cuda-toolkit");
        // The toolkit's last file goes here, so a toolkit that is installed later starts a new build.
        let installed = toolkit.join("installed");
        if fs::create_dir_all(&installed).is_ok() {
            println!("cargo:rerun-if-changed={}", installed.display());
        }
        if let Some(named) = env::var_os("NVCC") {
            if named.is_empty() {
                return Err("NVCC was empty when it was built".into());
            }
            let found = Compiler::at(PathBuf::from(named));
            return Ok(found.unwrap_or_else(|why| panic!("NVCC: {why}")));
        }
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os);
        let path = env::var_os("PATH").unwrap_or_default();
        let bins = homes
            .map(|home| PathBuf::from(home).join("bin"))
            // Half of a toolkit, which is being installed, is none.
            .chain(installed.join("wheels.txt").is_file().then(|| toolkit.join("nvidia/cu13/bin")))
            .chain(["/usr/local/cuda/bin".into()])
            .chain(env::split_paths(&path));
        let found = bins.map(|bin| bin.join("nvcc")).filter(|file| file.is_file());
        let mut reasons = vec![];
        for file in found {
            match Compiler::at(file) {
                Ok(compiler) => return Ok(compiler),
                Err(why) => reasons.push(why),
            }
        }
        reasons.push(format!("no nvcc {RELEASE} was found when it was built"));
        Err(format!("{}: run 'cargo xtask toolkit cuda' and build again", reasons.join("; ")))
    }

    fn at(path: PathBuf) -> Result<Compiler, String> {
        let output = Command::new(&path).arg("--version").output();
        let output = output.map_err(|error| format!("{} does not run: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains(&format!("release {RELEASE},")) {
            let release = text.split("release ").nth(1).and_then(|t| t.split(',').next());
            let release = release.unwrap_or("unknown");
            return Err(format!("{} is release {release}, not {RELEASE}", path.display()));
        }
        println!("cargo:rerun-if-changed={}", path.display());
        let appended = env::var("NVCC_APPEND_FLAGS").unwrap_or_default();
        Ok(Compiler { path, version: text, appended })
    }

    /// Runs on one source. The long form of the target: the short one adds a pass for the plain
    /// architecture, which refuses what only the special one has.
    pub(crate) fn run(&self, source: &Source, target: &str, to: &Path) -> Result<Output, String> {
        let number = target.trim_start_matches("sm_");
        let mut command = Command::new(&self.path);
        command
            .args(FLAGS)
            .args(REPORT)
            .arg(format!("-gencode=arch=compute_{number},code={target}"))
            .args(source.headers.iter().flat_map(|folder| [Path::new("-I"), folder]))
            .arg("-o")
            .args([to, &source.path]);
        command.output().map_err(|error| format!("{} does not run: {error}", self.path.display()))
    }
}
