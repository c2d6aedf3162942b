//! What the committed objects are and were made from.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{Kernel, OBJECTS};

/// The objects, in order of name and target. As text, a line for each of them and for each kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What the compiler of all of them says of itself.
    pub compiler: String,
    /// The objects.
    pub records: Vec<Record>,
}

/// One object.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// The source without extension, such as `norm/rms`.
    pub name: String,
    /// The target, such as `gfx942`.
    pub target: String,
    /// Digest of its bytes.
    pub sha256: String,
    /// [`crate::Source::digest`] of what it was made from.
    pub sources: String,
    /// Its kernels, in order of name.
    pub kernels: Vec<Kernel>,
}

impl Manifest {
    /// Where it lies in the objects' folder.
    pub const FILE: &str = "manifest.txt";

    /// That of a workspace.
    ///
    /// # Errors
    /// A file that cannot be read or understood, with the remedy.
    pub fn read(workspace: &Path) -> Result<Manifest, String> {
        let path = workspace.join(OBJECTS).join(Manifest::FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let manifest = text.and_then(|text| text.parse());
        manifest.map_err(|why| format!("{}: {why}; run 'cargo xtask objects rocm'", path.display()))
    }

    /// The record of a source for a target.
    pub fn find(&self, name: &str, target: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.name == name && record.target == target)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "compiler {}", self.compiler)?;
        for Record { name, target, sha256, sources, kernels } in &self.records {
            writeln!(f, "object {name} {target} {sha256} of {sources}")?;
            for kernel in kernels {
                writeln!(f, "kernel {kernel}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Manifest {
    type Err = String;

    fn from_str(text: &str) -> Result<Manifest, String> {
        let mut manifest = Manifest { compiler: String::new(), records: vec![] };
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match (kind, rest.split(' ').collect::<Vec<_>>().as_slice()) {
                ("compiler", _) => manifest.compiler = rest.to_owned(),
                ("object", [name, target, sha256, "of", sources]) => {
                    let [name, target, sha256, sources] =
                        [name, target, sha256, sources].map(|word| (*word).to_owned());
                    manifest.records.push(Record {
                        name,
                        target,
                        sha256,
                        sources,
                        kernels: vec![],
                    });
                }
                ("kernel", _) => {
                    let record = manifest.records.last_mut();
                    let record = record.ok_or("a kernel comes before its object")?;
                    record.kernels.push(rest.parse()?);
                }
                _ => return Err(format!("{line:?} is not understood")),
            }
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "compiler clang version 22.1.8\n\
        object norm/rms gfx942 aa of bb\n\
        kernel norm_rms threads=256 vgprs=72 agprs=0 sgprs=62 lds_bytes=256 scratch_bytes=0 \
        vgpr_spills=0 sgpr_spills=0 kernarg_bytes=352 float_mode=240 occupancy=7 \
        arguments=0:24,24:8\n\
        kernel norm_none threads=1 vgprs=1 agprs=0 sgprs=1 lds_bytes=0 scratch_bytes=0 \
        vgpr_spills=0 sgpr_spills=0 kernarg_bytes=0 float_mode=240 occupancy=8 arguments=\n";

    #[test]
    fn text_and_manifest_are_the_same() {
        let manifest: Manifest = TEXT.parse().unwrap();
        assert_eq!(manifest.to_string(), TEXT);
        let kernel = &manifest.find("norm/rms", "gfx942").unwrap().kernels[0];
        assert_eq!((kernel.name.as_str(), kernel.vgprs, kernel.occupancy), ("norm_rms", 72, 7));
        assert_eq!(kernel.arguments, [(0, 24), (24, 8)]);
        assert_eq!(manifest.find("norm/rms", "gfx950"), None);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (from, to) in
            [("object", "objects"), (" of", ""), ("=72", "=x"), ("vgprs", "regs"), ("0:24", "24")]
        {
            assert!(TEXT.replacen(from, to, 1).parse::<Manifest>().is_err(), "{from}");
        }
        assert!("kernel a".parse::<Manifest>().is_err());
    }
}
