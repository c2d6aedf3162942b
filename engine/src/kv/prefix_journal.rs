//! What a folder of kept prefixes says of its slots.

use super::prefix::PrefixBlock;
use super::slot_file::{private, refused};
use crate::error::{Error, Result};
use crate::regular_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The first words of every journal.
const FORMAT: &str = "tandem prefixes";
/// Grows with every change of the lines, or of what the slots hold.
const VERSION: u32 = 1;

/// Digest of a block's content, its bytes, and the digest of the block before it.
pub(super) type Sum = [u64; 2];

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    format: String,
    version: u32,
    /// What the bytes depend on besides the prefixes.
    salt: String,
    page_bytes: u64,
    window_bytes: u64,
}

impl Head {
    pub(super) fn new(salt: &str, page_bytes: u64, window_bytes: u64) -> Self {
        let (format, version, salt) = (FORMAT.to_owned(), VERSION, salt.to_owned());
        Self { format, version, salt, page_bytes, window_bytes }
    }
}

/// Every other line. A later one takes the slot of an earlier one over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A page of compressed entries.
    Block {
        /// Names it, for lines that follow.
        id: u64,
        /// The block before it.
        before: Option<u64>,
        slot: u64,
        sum: Sum,
        content: PrefixBlock,
    },
    /// Pages of the window before the end of a block, which makes it a resume point.
    Windows { id: u64, slot: u64, pages: u64, sum: Sum },
}

/// A file of lines, written at its end; it is replaced as a whole when it is longer than it need be.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    head: Head,
    file: File,
    /// Lines besides the head.
    pub(super) lines: usize,
}

impl Journal {
    /// Reads a journal: its lines up to the first that is none, as an interrupted write leaves one.
    /// `None` when there is no journal, or one of other bytes than `head` says.
    ///
    /// # Errors
    /// When the system refuses, or the file is no journal: it is left alone.
    pub(super) fn read(path: &Path, head: &Head) -> Result<Option<Vec<Line>>> {
        let shown = path.display().to_string();
        let file = match regular_file::open(path, &shown, "name another folder") {
            Ok(file) => file,
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut lines = BufReader::new(file).split(b'\n').map(std::io::Result::ok);
        let first = lines.next().flatten();
        let first = first.and_then(|line| serde_json::from_slice::<serde_json::Value>(&line).ok());
        if first.as_ref().is_none_or(|first| first["format"] != FORMAT) {
            let problem = "is no record of kept prefixes; name another folder";
            return Err(Error::file(&shown, problem));
        }
        let same = first.and_then(|first| serde_json::from_value::<Head>(first).ok());
        if same.as_ref() != Some(head) {
            return Ok(None);
        }
        let parsed = lines.map_while(|line| serde_json::from_slice(&line?).ok());
        Ok(Some(parsed.collect()))
    }

    /// Replaces the journal by these lines.
    ///
    /// # Errors
    /// When the system refuses; the one that was there stays then.
    pub(super) fn replace(path: PathBuf, head: Head, lines: &[Line]) -> Result<Self> {
        let new = path.with_extension("new");
        let fail = |source| refused("write", &new, source);
        let file = private().write(true).create(true).truncate(true).open(&new).map_err(fail)?;
        let mut writer = BufWriter::new(file);
        write(&mut writer, &head).and_then(|()| write_all(&mut writer, lines)).map_err(fail)?;
        let file = writer.into_inner().map_err(|error| fail(error.into_error()))?;
        fs::rename(&new, &path).map_err(|source| refused("replace", &path, source))?;
        Ok(Self { path, head, file, lines: lines.len() })
    }

    /// The same journal with these lines instead of its own.
    ///
    /// # Errors
    /// As [`Journal::replace`].
    pub(super) fn rewrite(&mut self, lines: &[Line]) -> Result<()> {
        *self = Self::replace(self.path.clone(), self.head.clone(), lines)?;
        Ok(())
    }

    /// Adds lines.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn append(&mut self, lines: &[Line]) -> Result<()> {
        let mut text = Vec::new();
        let written = write_all(&mut text, lines).and_then(|()| self.file.write_all(&text));
        self.lines += lines.len();
        written.map_err(|source| refused("write", &self.path, source))
    }
}

fn write_all(into: &mut impl Write, lines: &[Line]) -> std::io::Result<()> {
    lines.iter().try_for_each(|line| write(into, line))
}

fn write(into: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *into, line)?;
    into.write_all(b"\n")
}
