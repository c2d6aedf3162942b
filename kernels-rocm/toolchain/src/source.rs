//! Kernel sources.

use std::fs;
use std::path::{Path, PathBuf};

use crate::TARGETS;
use crate::compiler::FLAGS;
use crate::digest::digest;

/// Where the headers are that do not lie where an `#include` says: the device language, and those of plain kernels.
pub(crate) const HEADERS: [&str; 2] =
    ["kernels-rocm/kernels/device", "kernels-portable/kernels/device"];

/// One `.cu` file.
#[derive(Debug)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// `family/file` without extension: the object's name.
    pub name: String,
    /// Its text and that of every header it includes.
    text: Vec<u8>,
}

impl Source {
    /// Where the sources are, in the workspace: a folder for each family, headers in `device`.
    pub const FOLDERS: [&str; 2] = ["kernels-portable/kernels", "kernels-rocm/kernels"];

    /// All of a workspace, in order of name.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn all(workspace: &Path) -> Result<Vec<Source>, String> {
        let headers = HEADERS.map(|folder| workspace.join(folder));
        let mut sources = vec![];
        for folder in Source::FOLDERS {
            let folder = workspace.join(folder);
            for family in list(&folder)?.iter().filter(|path| path.is_dir()) {
                for path in list(family)? {
                    let name = path.strip_prefix(&folder).expect("listed inside the folder");
                    let name = name.with_extension("").to_string_lossy().replace('\\', "/");
                    if path.extension().is_some_and(|e| e == "cu") && is_ours(&name) {
                        let (mut seen, mut text) = (vec![], vec![]);
                        unfold(&path, &headers, &mut seen, &mut text)?;
                        sources.push(Source { path, name, text });
                    }
                }
            }
        }
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(sources)
    }

    /// The targets it is for: that of its suffix, or all.
    pub fn targets(&self) -> Vec<&'static str> {
        let named = |target: &&str| self.name.ends_with(&format!("_{target}"));
        match TARGETS.into_iter().find(named) {
            Some(target) => vec![target],
            None => TARGETS.to_vec(),
        }
    }

    /// Of all that an object of it depends on, but for the compiler.
    pub fn digest(&self, target: &str) -> String {
        digest(&[FLAGS.join(" ").as_bytes(), target.as_bytes(), &self.text].join(&0))
    }

    /// The file name of its object for a target, in the folder of that target.
    pub fn file(&self) -> String {
        format!("{}.hsaco", self.name.replace('/', "."))
    }
}

/// Not what is written for parts of NVIDIA.
fn is_ours(name: &str) -> bool {
    let suffix = name.rsplit('_').next().unwrap_or_default();
    let number = suffix.strip_prefix("sm").unwrap_or_default();
    let theirs = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    !theirs && !name.starts_with("probe/")
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error| format!("cannot list {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(fail)?;
    let mut paths =
        entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(fail)?;
    paths.sort();
    Ok(paths)
}

/// Adds a file's text, then that of the files it includes, each once.
fn unfold(
    path: &Path,
    headers: &[PathBuf],
    seen: &mut Vec<PathBuf>,
    text: &mut Vec<u8>,
) -> Result<(), String> {
    let fail = |error| format!("cannot read {}: {error}", path.display());
    let path = path.canonicalize().map_err(fail)?;
    if seen.contains(&path) {
        return Ok(());
    }
    let own = fs::read(&path).map_err(fail)?;
    let folder = path.parent().expect("a file lies in a folder").to_owned();
    seen.push(path);
    text.extend(&own);
    for line in String::from_utf8_lossy(&own).lines() {
        let name = line.trim_start().strip_prefix("#include \"").and_then(|l| l.split_once('"'));
        if let Some((name, _)) = name {
            // As the compiler looks for it.
            let mut paths = [&folder].into_iter().chain(headers).map(|folder| folder.join(name));
            let found = paths.find(|path| path.is_file());
            unfold(&found.unwrap_or_else(|| folder.join(name)), headers, seen, text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_other_parts_are_left_out() {
        for ours in ["norm/rms", "gemm/mxfp4_gfx950", "norm/sm", "norm/rms_small"] {
            assert!(is_ours(ours), "{ours}");
        }
        for theirs in ["gemm/mxfp8_narrow_sm90", "gemm/wide_sm100", "probe/launch"] {
            assert!(!is_ours(theirs), "{theirs}");
        }
    }

    #[test]
    fn the_digest_covers_headers_flags_and_target() {
        let workspace = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = workspace.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let lanes = format!("{}/lanes.h", HEADERS[0]);
        write(&format!("{}/language.h", HEADERS[0]), "#include \"lanes.h\"\n");
        write(&lanes, "");
        let kernel = format!("{}/norm/rms.cu", Source::FOLDERS[0]);
        write(&kernel, "#include \"../device/number.cuh\"\n");
        let header = format!("{}/device/number.cuh", Source::FOLDERS[0]);
        write(&header, "#include \"language.h\"\n// one\n");
        let digest_now = |target| {
            let sources = Source::all(workspace.path()).unwrap();
            assert_eq!(sources.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["norm/rms"]);
            sources[0].digest(target)
        };
        let mut seen = vec![digest_now("gfx942"), digest_now("gfx950")];
        write(&header, "#include \"language.h\"\n// two\n");
        seen.push(digest_now("gfx942"));
        write(&lanes, "// waves\n");
        seen.push(digest_now("gfx942"));
        write(&kernel, "#include \"../device/number.cuh\"\n\n");
        seen.push(digest_now("gfx942"));
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
