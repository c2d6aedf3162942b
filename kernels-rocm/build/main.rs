//! Embeds the committed code objects, and compiles those whose sources changed since.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use tandem_rocm_toolchain::{Compiler, Kernel, Manifest, OBJECTS, Source, digest};

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let workspace = here.parent().expect("the crate is a folder of the workspace");
    let out = PathBuf::from(variable("OUT_DIR"));
    for path in ["build", "kernels", "objects"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let path = out.join("objects.rs");
    match table(workspace, &out) {
        Ok(table) => {
            fs::write(&path, table).unwrap_or_else(|e| panic!("cannot write {path:?}: {e}"));
        }
        Err(why) => println!("cargo::error={}", why.replace('\n', "; ")),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

/// The table of objects, as Rust.
fn table(workspace: &Path, out: &Path) -> Result<String, String> {
    let manifest = Manifest::read(workspace)?;
    let mut text = String::from("pub(crate) static OBJECTS: &[CodeObject] = &[\n");
    let mut stale = Stale { workspace, out, compiler: None };
    for source in Source::all(workspace)? {
        println!("cargo:rerun-if-changed={}", source.path.display());
        for target in source.targets() {
            let record = manifest.find(&source.name, target);
            match record.filter(|record| record.sources == source.digest(target)) {
                Some(record) => {
                    let path = workspace.join(OBJECTS).join(target).join(source.file());
                    line(
                        &mut text,
                        (&source.name, target),
                        (&record.sha256, &path),
                        &record.kernels,
                    );
                }
                None => {
                    let (path, kernels) = stale.compile(&source, target)?;
                    let bytes = fs::read(&path).map_err(|error| format!("{path:?}: {error}"))?;
                    line(&mut text, (&source.name, target), (&digest(&bytes), &path), &kernels);
                }
            }
        }
    }
    for folder in Source::FOLDERS {
        println!("cargo:rerun-if-changed={}", workspace.join(folder).display());
    }
    text.push_str("];\n");
    Ok(text)
}

fn line(
    text: &mut String,
    (name, target): (&str, &str),
    (sha256, path): (&str, &Path),
    kernels: &[Kernel],
) {
    let kernel = |kernel: &Kernel| {
        let Kernel { name, threads, vgprs, agprs, lds_bytes, occupancy, arguments, .. } = kernel;
        format!(
            "Entry {{ name: {name:?}, threads: {threads}, vgprs: {vgprs}, agprs: {agprs}, \
             lds_bytes: {lds_bytes}, occupancy: {occupancy}, arguments: &{arguments:?} }}"
        )
    };
    let entries: Vec<_> = kernels.iter().map(kernel).collect();
    writeln!(
        text,
        "    CodeObject {{ name: {name:?}, target: {target:?}, sha256: {sha256:?}, \
         bytes: &Aligned(*include_bytes!({path:?})).0, entries: &[{}] }},",
        entries.join(", ")
    )
    .expect("strings grow");
}

/// Makes what the committed objects lack.
struct Stale<'a> {
    workspace: &'a Path,
    out: &'a Path,
    /// Looked for once there is a need.
    compiler: Option<Compiler>,
}

impl Stale<'_> {
    /// An object of all builds of the workspace: named by all that it depends on, and whole at once.
    fn compile(&mut self, source: &Source, target: &str) -> Result<(PathBuf, Vec<Kernel>), String> {
        let compiler = match self.compiler.take() {
            Some(compiler) => compiler,
            None => self.find(source)?,
        };
        let key = digest(format!("{}\n{}", compiler.version, source.digest(target)).as_bytes());
        let store = self.workspace.join("target/rocm-objects");
        let kept = store.join(format!("{target}.{}.{}", &key[..32], source.file()));
        let fail = |error: std::io::Error| format!("cannot keep {}: {error}", kept.display());
        if !kept.is_file() {
            let fresh = self.out.join(source.file());
            compiler.compile(self.workspace, source, target, &fresh)?;
            fs::create_dir_all(&store).map_err(fail)?;
            let partial = kept.with_extension(format!("{}.partial", process::id()));
            fs::copy(&fresh, &partial).and_then(|_| fs::rename(&partial, &kept)).map_err(fail)?;
        }
        let bytes = fs::read(&kept).map_err(fail)?;
        self.compiler = Some(compiler);
        Ok((kept, tandem_rocm_toolchain::describe(&bytes, target)?))
    }

    fn find(&self, source: &Source) -> Result<Compiler, String> {
        for name in Compiler::ENVIRONMENT {
            println!("cargo:rerun-if-env-changed={name}");
        }
        Compiler::find(self.workspace).map_err(|why| {
            format!(
                "{OBJECTS} does not have what {} makes now, and {why}: run 'cargo xtask toolkit rocm' and \
                 build again",
                source.path.display()
            )
        })
    }
}
