//! Files that have an end: opened without waiting for anybody, and no device, pipe or folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result, path_remedy};

/// Opens a file. `shown` names it in errors; `instead` says what to give when it is a pipe, a
/// device or a folder.
///
/// # Errors
/// What is no regular file, a link that leads nowhere, and whatever the system refuses to open.
pub fn open(path: &Path, shown: &str, instead: &str) -> Result<File> {
    let failed = |source| Error::Io { action: "open", path: path.display().to_string(), source };
    // Asked before opening: opening a pipe waits for somebody to write to it.
    let metadata = fs::metadata(path).map_err(|source| match path.is_symlink() {
        true => Error::file(shown, unfollowed(&source)),
        false => failed(source),
    })?;
    if !metadata.is_file() {
        return Err(Error::file(shown, format!("not a regular file; {instead}")));
    }
    File::open(path).map_err(failed)
}

/// The first `limit_bytes` of a file that the caller named, or all when it is shorter.
///
/// # Errors
/// As [`open`], and when the system fails to read. All are the caller's mistakes, since another
/// file would do.
pub fn read(path: &str, limit_bytes: u64, instead: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(Path::new(path), path, instead).and_then(|file| {
        let read = file.take(limit_bytes).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })
    });
    match read {
        Err(Error::Io { action, source, .. }) if path_remedy(&source).is_empty() => {
            Err(Error::file(path, format!("cannot {action} it: {source}; give another file")))
        }
        read => read.map(|_| bytes),
    }
}

/// What is wrong with a link to nothing, to itself, or to what may not be read.
fn unfollowed(source: &io::Error) -> String {
    format!("a link that cannot be followed ({source}); put the file itself in its place")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refused in one line, exit code 2, that ends with `remedy`.
    #[track_caller]
    fn refused(path: &str, remedy: &str) {
        let error = read(path, 10, "give a file").unwrap_err();
        let message = error.to_string();
        assert!(message.ends_with(remedy) && message.lines().count() == 1, "{message}");
        assert_eq!(error.exit_code(), 2, "{message}");
    }

    #[test]
    fn what_has_no_end_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success(), "mkfifo makes the pipe");
        for path in [pipe.to_str().unwrap(), folder.path().to_str().unwrap(), "/dev/zero"] {
            refused(path, ": not a regular file; give a file");
        }
    }

    #[test]
    fn names_that_lead_nowhere_have_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("link", &link).unwrap();
        let link = link.to_str().unwrap();
        refused(link, "; put the file itself in its place");
        refused(&format!("{link}/file"), "; give another file");
        refused(&"n".repeat(5000), "; check the path");
        refused("nul\0", "; give another file");
        refused("/no/such", "; check the path");
        // Regular by its kind, and yet it fails to read.
        #[cfg(target_os = "linux")]
        refused("/proc/self/mem", "; give another file");
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"abcdef").unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(read(path, 3, "").unwrap(), b"abc");
        assert_eq!(read(path, 9, "").unwrap(), b"abcdef");
    }
}
