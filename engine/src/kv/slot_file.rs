//! A file of equal slots.

use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Hands out slots of a file, the lowest free one first, so that the file stays as short as what it
/// holds. It has no record of its own of which are taken.
#[derive(Debug)]
pub(super) struct SlotFile {
    file: File,
    path: PathBuf,
    slot_bytes: u64,
    /// Slots from here on were never taken.
    end: u64,
    /// Slots before `end` that nobody has.
    free: BTreeSet<u64>,
}

impl SlotFile {
    /// Opens it, or makes it: for nobody else to read.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn open(path: PathBuf, slot_bytes: u64) -> Result<Self> {
        let options = private().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(|source| refused("open", &path, source))?;
        Ok(Self { file, path, slot_bytes, end: 0, free: BTreeSet::new() })
    }

    /// The lowest slot that nobody has.
    pub(super) fn take(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// Gives a slot back; what it holds stays until it is written again.
    pub(super) fn give(&mut self, slot: u64) {
        self.free.insert(slot);
    }

    /// Takes exactly these slots.
    pub(super) fn take_only(&mut self, taken: &BTreeSet<u64>) {
        self.end = taken.last().map_or(0, |last| last + 1);
        self.free = (0..self.end).filter(|slot| !taken.contains(slot)).collect();
    }

    /// Cuts off what lies behind the last slot that is taken.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn trim(&self) -> Result<()> {
        let length = self.file.metadata().map(|metadata| metadata.len());
        let most = self.end * self.slot_bytes;
        length
            .and_then(|length| if length > most { self.file.set_len(most) } else { Ok(()) })
            .map_err(|source| refused("cut", &self.path, source))
    }

    /// The first `bytes` of a slot; `None` when the file does not have them.
    ///
    /// # Errors
    /// When the system fails to read what is there.
    pub(super) fn read(&self, slot: u64, bytes: u64) -> Result<Option<Vec<u8>>> {
        let Some(offset) = slot.checked_mul(self.slot_bytes).filter(|_| bytes <= self.slot_bytes)
        else {
            return Ok(None);
        };
        let mut into = vec![0; bytes as usize];
        match self.file.read_exact_at(&mut into, offset) {
            Ok(()) => Ok(Some(into)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(refused("read", &self.path, source)),
        }
    }

    /// Writes a slot, or its beginning.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn write(&self, slot: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(bytes, slot * self.slot_bytes);
        written.map_err(|source| refused("write", &self.path, source))
    }
}

/// Files that only their owner may read: they hold what people wrote.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(super) fn refused(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { action, path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_slot_is_next_and_the_file_as_short_as_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut slots = SlotFile::open(folder.path().join("slots"), 4).unwrap();
        for expected in 0..3 {
            assert_eq!(slots.take(), expected);
            slots.write(expected, &[expected as u8; 4]).unwrap();
        }
        slots.give(1);
        assert_eq!((slots.take(), slots.take()), (1, 3));
        assert_eq!(slots.read(2, 3).unwrap(), Some(vec![2; 3]));
        assert_eq!(slots.read(3, 4).unwrap(), None, "never written");
        assert_eq!(slots.read(u64::MAX, 4).unwrap(), None);
        assert_eq!(slots.read(0, 5).unwrap(), None, "more than a slot");
        slots.take_only(&BTreeSet::from([1]));
        slots.trim().unwrap();
        assert_eq!(slots.read(2, 4).unwrap(), None, "cut off");
        assert_eq!((slots.take(), slots.take()), (0, 2));
    }
}
