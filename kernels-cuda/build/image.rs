//! One source compiled for one target.

use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;
use sha2::{Digest, Sha256};

use crate::compiler::{Compiler, FLAGS};
use crate::report::{self, Entry};
use crate::source::Source;

/// Best compression: images are packed once and unpacked by every process.
const LEVEL: u8 = 9;

/// A compressed image and what is known of it.
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) target: &'static str,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    /// Of the image as the driver gets it.
    pub(crate) sha256: String,
    /// Where the compressed image lies.
    pub(crate) packed: PathBuf,
}

impl Image {
    /// Compiles, unless the same source was compiled by the same compiler before.
    ///
    /// # Errors
    /// What the compiler said, with the name of the source.
    pub(crate) fn make(
        compiler: &Compiler,
        source: &Source,
        target: &'static str,
        out: &Path,
    ) -> Result<Image, String> {
        let fail = |why: String| format!("kernel {} for {target}: {why}", source.name);
        let stem = format!("{}.{target}", source.name.replace('/', "."));
        let cubin = out.join(format!("{stem}.cubin"));
        let log = out.join(format!("{stem}.log"));
        let mark = out.join(format!("{stem}.key"));
        let key = key(compiler, source, target);
        if fs::read_to_string(&mark).ok().as_ref() != Some(&key) {
            let output = compiler.run(&source.path, target, &cubin).map_err(fail)?;
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            if !output.status.success() {
                return Err(fail(text.into_owned()));
            }
            fs::write(&log, &*text).map_err(|error| fail(error.to_string()))?;
        }
        let read = |path: &Path| fs::read(path).map_err(|error| fail(error.to_string()));
        let report = read(&log)?;
        let entries = report::entries(&String::from_utf8_lossy(&report)).map_err(fail)?;
        let bytes = read(&cubin)?;
        let packed = out.join(format!("{stem}.zlib"));
        let write = |path: &Path, bytes: &[u8]| {
            fs::write(path, bytes).map_err(|error| fail(error.to_string()))
        };
        write(&packed, &compress_to_vec_zlib(&bytes, LEVEL))?;
        // Last, so that a build that was interrupted compiles again.
        write(&mark, key.as_bytes())?;
        Ok(Image {
            name: source.name.clone(),
            target,
            entries,
            bytes: bytes.len(),
            sha256: hex(&Sha256::digest(&bytes)),
            packed,
        })
    }
}

/// What an image depends on.
fn key(compiler: &Compiler, source: &Source, target: &str) -> String {
    let mut hash = Sha256::new();
    for part in [&compiler.version, &compiler.appended, &FLAGS.join(" "), target] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(&source.text);
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
