//! Where bytes come from: files of a folder, or files embedded in the program.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, printable};
use crate::regular_file;

/// Positioned reads with 64-bit offsets, from any thread.
pub trait ReadAt: Send + Sync {
    /// Bytes there are.
    fn length_bytes(&self) -> u64;

    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// When the bytes are not all there or the system fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for &'static [u8] {
    fn length_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(into.len()));
        match start.zip(end).and_then(|(start, end)| self.get(start..end)) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A file opened for positioned reads. Its length is taken once, at opening.
struct OpenFile {
    file: File,
    length_bytes: u64,
}

impl ReadAt for OpenFile {
    fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

/// A flat set of named files.
#[derive(Debug, Clone)]
pub enum Files {
    /// The files of a folder on disk.
    Folder(PathBuf),
    /// Files that live in the program: name and content.
    Embedded(&'static [(&'static str, &'static [u8])]),
}

impl Files {
    /// The files of `folder`.
    pub fn folder(folder: impl AsRef<Path>) -> Self {
        Self::Folder(folder.as_ref().to_path_buf())
    }

    /// The names of the files, sorted; folders within are left out.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = match self {
            Self::Embedded(files) => files.iter().map(|(name, _)| (*name).to_owned()).collect(),
            Self::Folder(folder) => list(folder).map_err(|source| Error::Io {
                action: "list",
                path: folder.display().to_string(),
                source,
            })?,
        };
        names.sort_unstable();
        Ok(names)
    }

    /// Whether there is something of that name. [`Files::open`] refuses what is no file, a link
    /// that leads nowhere included.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::Embedded(files) => files.iter().any(|(known, _)| *known == name),
            Self::Folder(folder) => is_plain(name) && folder.join(name).symlink_metadata().is_ok(),
        }
    }

    /// Opens a file for positioned reads.
    ///
    /// # Errors
    /// When `name` is not a plain file name, or the file is missing or unreadable.
    pub fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        if !is_plain(name) {
            return Err(Error::file(name, "not a plain file name; paths are not followed"));
        }
        let failed = |source| Error::Io { action: "open", path: self.path(name), source };
        match self {
            Self::Embedded(files) => files
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, bytes)| Box::new(*bytes) as Box<dyn ReadAt>)
                .ok_or_else(|| failed(io::ErrorKind::NotFound.into())),
            Self::Folder(folder) => {
                let path = folder.join(name);
                let file = regular_file::open(&path, name, "take the release's")?;
                let metadata = file.metadata().map_err(failed)?;
                Ok(Box::new(OpenFile { file, length_bytes: metadata.len() }))
            }
        }
    }

    /// The whole content of a small file such as `config.json`.
    ///
    /// # Errors
    /// As [`Files::open`], and when the file is longer than `limit_bytes`.
    pub fn read(&self, name: &str, limit_bytes: u64) -> Result<Vec<u8>> {
        let source = self.open(name)?;
        let length = source.length_bytes();
        if length > limit_bytes {
            let problem = format!("{length} bytes exceed the limit of {limit_bytes}");
            return Err(Error::file(name, problem));
        }
        let mut bytes = vec![0; length as usize];
        source.read_at(0, &mut bytes).map_err(|source| Error::Io {
            action: "read",
            path: self.path(name),
            source,
        })?;
        Ok(bytes)
    }

    fn path(&self, name: &str) -> String {
        match self {
            Self::Embedded(_) => format!("embedded {}", printable(name)),
            Self::Folder(folder) => folder.join(name).display().to_string(),
        }
    }
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// A name without separators or parent steps: it cannot leave the folder.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: Files = Files::Embedded(&[("a.txt", b"abcdef"), ("b.txt", b"")]);

    #[test]
    fn embedded_bytes_are_read_by_position() {
        let source = FILES.open("a.txt").unwrap();
        let mut bytes = [0; 3];
        source.read_at(2, &mut bytes).unwrap();
        assert_eq!(&bytes, b"cde");
        assert!(source.read_at(4, &mut bytes).is_err());
        assert!(source.read_at(u64::MAX, &mut bytes).is_err());
        assert_eq!(FILES.names().unwrap(), ["a.txt", "b.txt"]);
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["../x", "/etc/passwd", "..", "a/b", "a\\b", "", ".hidden"] {
            assert!(Files::folder("/tmp").open(name).is_err(), "{name:?}");
            assert!(!Files::folder("/tmp").contains(name), "{name:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success(), "mkfifo makes the pipe");
        let error = Files::folder(folder.path()).open("config.json").err().unwrap();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn links_to_themselves_or_nothing_name_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::folder(folder.path());
        for (link, target) in [("a.json", "b.json"), ("b.json", "a.json"), ("c.json", "none")] {
            std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
        }
        for link in ["a.json", "b.json", "c.json"] {
            let error = files.open(link).err().unwrap();
            let message = error.to_string();
            assert!(message.starts_with(&format!("{link}: a link that cannot be")), "{message}");
            assert!(message.ends_with("; put the file itself in its place"), "{message}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(files.names().unwrap().is_empty());
    }

    #[test]
    fn small_files_have_a_limit() {
        assert_eq!(FILES.read("a.txt", 6).unwrap(), b"abcdef");
        let error = FILES.read("a.txt", 5).unwrap_err().to_string();
        assert_eq!(error, "a.txt: 6 bytes exceed the limit of 5");
        assert!(FILES.read("c.txt", 5).is_err());
    }
}
