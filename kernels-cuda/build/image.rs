//! One source compiled for one target.

use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;
use sha2::{Digest, Sha256};

use crate::compiler::{Compiler, FLAGS};
use crate::report::{self, Entry};
use crate::source::Source;
use crate::store;

/// Best compression: images are packed once and unpacked by every process.
const LEVEL: u8 = 9;

/// Digits of a key in names of files.
pub(crate) const KEY_DIGITS: usize = 32;

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
    /// Compiles, unless the store has what the same compiler made of the same source. Packs it
    /// in `out`.
    ///
    /// # Errors
    /// What the compiler said, with the name of the source.
    pub(crate) fn make(
        compiler: &Compiler,
        source: &Source,
        target: &'static str,
        (store, out): (&Path, &Path),
    ) -> Result<Image, String> {
        let fail = |why: String| format!("kernel {} for {target}: {why}", source.name);
        let stem = format!("{}.{target}", source.name.replace('/', "."));
        let key = key(compiler, source, target);
        let kept = |kind: &str| store.join(format!("{stem}.{}.{kind}", &key[..KEY_DIGITS]));
        let (cubin, log) = (kept("cubin"), kept("log"));
        // The log comes last, so that a build that was interrupted compiles again.
        if !log.is_file() {
            let fresh = out.join(format!("{stem}.cubin"));
            let output = compiler.run(source, target, &fresh).map_err(fail)?;
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            if !output.status.success() {
                return Err(fail(text.into_owned()));
            }
            let fresh_log = out.join(format!("{stem}.log"));
            fs::write(&fresh_log, &*text)
                .and_then(|()| store::keep(&fresh, &cubin))
                .and_then(|()| store::keep(&fresh_log, &log))
                .map_err(|error| fail(error.to_string()))?;
        }
        let read = |path: &Path| fs::read(path).map_err(|error| fail(error.to_string()));
        let report = read(&log)?;
        let entries = report::entries(&String::from_utf8_lossy(&report)).map_err(fail)?;
        let bytes = read(&cubin)?;
        let packed = out.join(format!("{stem}.zlib"));
        fs::write(&packed, compress_to_vec_zlib(&bytes, LEVEL))
            .map_err(|error| fail(error.to_string()))?;
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
