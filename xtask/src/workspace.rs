//! Where things lie.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The workspace's target folder.
pub(crate) fn target_folder() -> PathBuf {
    root().join("target")
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {folder:?}: {error}"))
}

/// Writes a file whole.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {path:?}: {error}"))
}
