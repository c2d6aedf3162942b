//! The committed code objects of the AMD backend.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tandem_rocm_toolchain::{Compiler, Manifest, OBJECTS, Record, Source, TARGETS, digest};

use crate::workspace::{make_folder, root, write};

/// Compilers that run at once.
const WORKERS: usize = 2;

/// Compiles every source anew, by one compiler, and records what came out.
///
/// Returns what to tell the user.
pub(crate) fn rocm() -> Result<String, String> {
    let compiler = Compiler::find(root())
        .map_err(|why| format!("{why}: run 'cargo xtask toolkit rocm' first"))?;
    let folder = root().join(OBJECTS);
    // Complete before anything is replaced.
    let fresh = root().join("target/rocm-objects/fresh");
    let sources = Source::all(root())?;
    let records = compile(&compiler, &sources, &fresh)?;
    for target in TARGETS {
        replace(&fresh.join(target), &folder.join(target))?;
    }
    let count = records.len();
    let manifest = Manifest { compiler: compiler.version, records };
    write(&folder.join(Manifest::FILE), &manifest.to_string())?;
    Ok(format!("made {count} objects by {}", manifest.compiler))
}

fn compile(compiler: &Compiler, sources: &[Source], to: &Path) -> Result<Vec<Record>, String> {
    for target in TARGETS {
        clear(&to.join(target))?;
        make_folder(&to.join(target))?;
    }
    let jobs: Vec<_> =
        sources.iter().flat_map(|s| s.targets().into_iter().map(move |t| (s, t))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((source, target)) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let record = record(compiler, source, target, to);
                    done.lock().expect("no worker panics").push(record);
                }
            });
        }
    });
    let done = done.into_inner().expect("no worker panics");
    let mut records = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    records.sort_by(|a, b| (&a.name, &a.target).cmp(&(&b.name, &b.target)));
    Ok(records)
}

fn record(compiler: &Compiler, source: &Source, target: &str, to: &Path) -> Result<Record, String> {
    let path = to.join(target).join(source.file());
    let kernels = compiler.compile(root(), source, target, &path)?;
    let bytes = fs::read(&path).map_err(|error| format!("cannot read {path:?}: {error}"))?;
    Ok(Record {
        name: source.name.clone(),
        target: target.to_owned(),
        sha256: digest(&bytes),
        sources: source.digest(target),
        kernels,
    })
}

/// Puts the files of one folder in the place of another's.
fn replace(from: &Path, to: &Path) -> Result<(), String> {
    clear(to)?;
    make_folder(to)?;
    let fail = |error| format!("cannot copy {from:?} to {to:?}: {error}");
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let bytes = fs::read(entry.path()).map_err(fail)?;
        // Not as an executable, which the linker makes it.
        fs::write(to.join(entry.file_name()), bytes).map_err(fail)?;
    }
    Ok(())
}

fn clear(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {folder:?}: {error}"))
}
