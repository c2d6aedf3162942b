//! Kernel sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Every target: Hopper, and the family of data centre Blackwell (one image for 10.0 and 10.3).
const TARGETS: &[&str] = &["sm_90a", "sm_100f"];

/// The folder of plain kernels, which all backends compile.
pub(crate) fn plain(here: &Path) -> PathBuf {
    here.with_file_name("kernels-portable").join("kernels")
}

/// One `.cu` file.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Where the headers are that do not lie where it says.
    pub(crate) headers: Vec<PathBuf>,
    /// `family/file` without extension: the image's name.
    pub(crate) name: String,
    /// Its text and that of every header that it includes, part of its images' keys.
    pub(crate) text: Vec<u8>,
}

impl Source {
    /// All of them, in order of name.
    pub(crate) fn all(here: &Path) -> Vec<Source> {
        let (own, plain) = (here.join("kernels"), plain(here));
        let headers = [own.join("cuda"), plain.join("device")];
        let within = |kernels: &PathBuf| Source::within(kernels, &headers);
        let mut sources: Vec<_> = [own, plain].iter().flat_map(within).collect();
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        sources
    }

    fn within(kernels: &Path, headers: &[PathBuf]) -> Vec<Source> {
        let families = list(kernels).into_iter().filter(|path| path.is_dir());
        let files = families.flat_map(|family| list(&family));
        let sources = files.filter(|path| path.extension().is_some_and(|e| e == "cu"));
        sources
            .map(|path| {
                let inside = path.strip_prefix(kernels).expect("listed inside the folder");
                let name = inside.with_extension("").to_string_lossy().replace('\\', "/");
                let mut text = vec![];
                unfold(&path, headers, &mut vec![], &mut text);
                Source { path, headers: headers.to_owned(), name, text }
            })
            .collect()
    }

    /// Whether the emulator knows all that it uses, unlike what launches are probed with.
    #[cfg(feature = "emu")]
    pub(crate) fn runs_on_host(&self) -> bool {
        self.targets().contains(&TARGETS[0]) && self.name != "probe/launch"
    }

    /// The kernels in it, by the macro that begins each.
    #[cfg(feature = "emu")]
    pub(crate) fn kernels(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).expect("read before");
        let begun = text.split("\nKERNEL(").skip(1);
        begun.filter_map(|rest| Some(rest.split(',').next()?.trim().to_owned())).collect()
    }

    /// The targets it is for: those of its suffix, or all.
    pub(crate) fn targets(&self) -> &'static [&'static str] {
        if self.name.ends_with("_sm90") {
            &["sm_90a"]
        } else if self.name.ends_with("_sm100") {
            &["sm_100f"]
        } else {
            TARGETS
        }
    }
}

pub(crate) fn list(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot list {folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|e| e.expect("a folder that lists").path()).collect();
    paths.sort();
    paths
}

/// Adds a file's text, then that of the files it includes, each once.
fn unfold(path: &Path, headers: &[PathBuf], seen: &mut Vec<PathBuf>, text: &mut Vec<u8>) {
    let path = path.canonicalize().unwrap_or_else(|error| panic!("cannot read {path:?}: {error}"));
    if seen.contains(&path) {
        return;
    }
    let own = read(&path);
    let lines = String::from_utf8_lossy(&own);
    let folder = path.parent().expect("a file lies in a folder").to_owned();
    seen.push(path);
    text.extend(&own);
    for line in lines.lines() {
        let name = line.trim_start().strip_prefix("#include \"").and_then(|l| l.split_once('"'));
        if let Some((name, _)) = name {
            // As compilers look for it.
            let mut paths = [&folder].into_iter().chain(headers).map(|folder| folder.join(name));
            let found = paths.find(|path| path.is_file());
            unfold(&found.unwrap_or_else(|| folder.join(name)), headers, seen, text);
        }
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("cannot read {path:?}: {error}"))
}
