//! Diagnoses, for people.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Tells a diagnosis on stderr, and in the file if there is one.
pub(crate) fn tell(file: Option<&Path>, what: &str) {
    let line = format!("libamdhip64 (simulated): {}\n", what.replace('\n', " "));
    // A program may have closed its stderr, and a file may be out of reach; there is nobody else to tell.
    let _unheard = std::io::stderr().write_all(line.as_bytes());
    let Some(file) = file else { return };
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let _unheard = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}
