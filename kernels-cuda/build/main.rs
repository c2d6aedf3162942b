//! Compiles every kernel source to one image per target and writes the table that the crate embeds.
//!
//! Without a compiler the table is empty and says why: everything but the kernels still builds.

mod compiler;
#[cfg(feature = "emu")]
mod host;
mod image;
mod report;
mod source;
mod store;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{env, fs, thread};

use compiler::Compiler;
use image::Image;
use source::Source;

/// Compilers that run at once: each takes up to a gigabyte for the larger kernels.
const WORKERS: usize = 2;

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let folders = ["kernels", "build", "emu"].map(|path| here.join(path));
    for path in folders.iter().chain([&source::plain(&here)]) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let store = store::folder(&here, &out);
    #[cfg(feature = "emu")]
    host::compile(&Source::all(&here), &here, (&store, &out));
    let table = match Compiler::find(&here) {
        Ok(compiler) => table::of(&compile(&compiler, &here, (&store, &out))),
        Err(why) => table::empty(&why),
    };
    let path = out.join("images.rs");
    fs::write(&path, table).unwrap_or_else(|error| panic!("cannot write {path:?}: {error}"));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

/// Every image, in order of name and target.
fn compile(compiler: &Compiler, here: &Path, folders: (&Path, &Path)) -> Vec<Image> {
    let sources = Source::all(here);
    let jobs: Vec<_> =
        sources.iter().flat_map(|s| s.targets().iter().map(move |t| (s, *t))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![]));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((source, target)) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let image = Image::make(compiler, source, target, folders);
                    done.lock().expect("a failed compilation ends the build").push(image);
                }
            });
        }
    });
    let mut images = done.into_inner().expect("a failed compilation ends the build");
    let failures: Vec<String> = images.iter().filter_map(|i| i.as_ref().err().cloned()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    images.sort_by_key(|i| i.as_ref().ok().map(|i| (i.name.clone(), i.target)));
    images.into_iter().flatten().collect()
}
