//! What was compiled before, shared by all builds of a workspace.
//!
//! Cargo builds this crate several times over, with and without the emulator, for tests and for lints, each with a
//! folder of its own. Files of the store are named by all that they depend on, so any build may take any of them.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

/// The folder in the workspace's `target`; `out` where that cannot be made.
pub(crate) fn folder(crate_folder: &Path, out: &Path) -> PathBuf {
    let workspace = crate_folder.parent().expect("the crate is a folder of the workspace");
    let store = workspace.join("target").join("cuda-images");
    if fs::create_dir_all(&store).is_ok() { store } else { out.to_owned() }
}

/// Copies a file there. Whole at once, since other builds may look for it now.
pub(crate) fn keep(fresh: &Path, kept: &Path) -> io::Result<()> {
    let partial = kept.with_extension(format!("{}.partial", process::id()));
    fs::copy(fresh, &partial)?;
    fs::rename(&partial, kept)
}
