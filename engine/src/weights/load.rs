//! Weights onto a device: positioned reads, in the device's own layout, one reservation per module.

use std::ops::Range;

use tandem_hal::{Class, Device, Elem, Enc, Layout, Place, Stream, View};

use super::checkpoint::Checkpoint;
use super::codes::Codes;
use super::random_codes::RandomCodes;
use super::room::Room;
use super::share::Share;
use super::staging::Staging;
use super::stored::{Stored, StoredRows};
use crate::error::Result;

/// Bytes read so far and bytes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Read, checked and handed to the device.
    pub done_bytes: u64,
    /// To read in all.
    pub total_bytes: u64,
}

/// What weights hold.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// Those of a checkpoint, already checked against its catalogue.
    Checkpoint(&'a Checkpoint),
    /// Random numbers that follow from a seed: valid codes, of sizes that keep activations finite.
    Random(u64),
    /// Nothing in particular: memory is reserved, which is all a planning device needs.
    Unspecified,
}

/// Where weights come from and what a rank wants of them.
pub struct Source<'a> {
    /// What they hold.
    pub content: Content<'a>,
    /// The rank's part.
    pub share: Share,
    /// Where tables of rows lie.
    pub tables: Place,
}

/// Loads a model's weights. `build` runs twice: once to add up what is to be read, and once to read
/// it; it must ask for the same modules both times.
///
/// # Errors
/// [`crate::Error::Tensor`] for NaN weights and unreadable tensors, memory that is not there, or what
/// `build` returns.
pub fn load<T>(
    device: &dyn Device,
    source: &Source<'_>,
    progress: &mut dyn FnMut(Progress),
    build: impl Fn(&mut Loader<'_>) -> Result<T>,
) -> Result<T> {
    let mut measure = Loader::new(device, source, None)?;
    build(&mut measure)?;
    let total_bytes = measure.read_bytes;
    let mut report = |done_bytes| progress(Progress { done_bytes, total_bytes });
    report(0);
    let mut loader = Loader::new(device, source, Some(&mut report))?;
    let built = build(&mut loader)?;
    loader.stream.sync()?;
    Ok(built)
}

/// Fills modules one after another.
pub struct Loader<'a> {
    device: &'a dyn Device,
    source: &'a Source<'a>,
    stream: Box<dyn Stream>,
    staging: Staging,
    random: RandomCodes,
    /// Takes the bytes read so far; `None` while they are only added up.
    report: Option<&'a mut dyn FnMut(u64)>,
    read_bytes: u64,
}

impl<'a> Loader<'a> {
    fn new(
        device: &'a dyn Device,
        source: &'a Source<'a>,
        report: Option<&'a mut dyn FnMut(u64)>,
    ) -> Result<Self> {
        let (stream, staging) = (device.stream()?, Staging::default());
        let seed = if let Content::Random(seed) = source.content { seed } else { 0 };
        let random = RandomCodes::new(seed);
        Ok(Self { device, source, stream, staging, random, report, read_bytes: 0 })
    }

    /// The rank's part of the weights.
    pub fn share(&self) -> Share {
        self.source.share
    }

    /// Everything that `build` takes, in one reservation for `purpose`, such as `layers.2.attn`.
    ///
    /// # Errors
    /// As [`load`].
    pub fn module<T>(
        &mut self,
        purpose: &str,
        build: impl Fn(&mut Module<'_, 'a>) -> Result<T>,
    ) -> Result<T> {
        let before = self.read_bytes;
        let mut measured = Module { room: Room::measuring(self.device), loader: self, fill: false };
        let views = build(&mut measured)?;
        if measured.loader.report.is_none() {
            return Ok(views);
        }
        let room = measured.room.carving(purpose)?;
        self.read_bytes = before;
        build(&mut Module { room, loader: self, fill: true })
    }

    /// A table of rows with one scale per 32 columns, in a reservation of its own that may lie in
    /// host memory.
    ///
    /// # Errors
    /// As [`load`], and when the device has no such place.
    pub fn table(&mut self, purpose: &str, name: &str, rows: u64, width: u64) -> Result<View> {
        let shape = [rows, width];
        let tensors = Stored::scaled(name, Enc::Q8, Codes::E4m3, Codes::E4m3Scale, 0..rows, width);
        if self.report.is_none() {
            self.read_bytes += tensors.bytes();
            return Ok(View::absent(Enc::Q8));
        }
        let bytes = View::reserved_bytes(Enc::Q8, &shape);
        let reserved = self.device.allocate(bytes, self.source.tables, purpose)?;
        let view = View::dense(&reserved, 0, Enc::Q8, &shape)?;
        self.fill(&view, &tensors)?;
        Ok(view)
    }

    /// The bytes of `stored` into `view`, through the staging buffer where the layout is private.
    fn fill(&mut self, view: &View, stored: &Stored) -> Result<()> {
        if let Content::Unspecified = self.source.content {
            self.read_bytes += stored.bytes();
            return Ok(());
        }
        if view.layout() == Layout::Plain {
            return self.write(view, stored);
        }
        let plain =
            self.staging.view(self.device, self.stream.as_ref(), view.enc(), view.shape())?;
        self.write(&plain, stored)?;
        Ok(self.device.pack(&plain, view, self.stream.as_ref())?)
    }

    /// The same into a plain view, in pieces.
    fn write(&mut self, view: &View, stored: &Stored) -> Result<()> {
        let file = match self.source.content {
            Content::Checkpoint(checkpoint) => Some(StoredRows::of(checkpoint, stored)?),
            Content::Random(_) | Content::Unspecified => None,
        };
        for piece in stored.pieces() {
            let buffer = self.staging.host();
            buffer.clear();
            match &file {
                Some(rows) => rows.read(stored, &piece, buffer)?,
                None => self.random.append(stored, &piece, buffer),
            }
            let part = view.rows(piece)?;
            self.stream.write(&part, self.staging.host())?;
            self.read_bytes += part.bytes();
            if let Some(report) = &mut self.report {
                report(self.read_bytes);
            }
        }
        Ok(())
    }
}

/// One module while it is loaded.
pub struct Module<'m, 'a> {
    room: Room<'a>,
    loader: &'m mut Loader<'a>,
    fill: bool,
}

impl Module<'_, '_> {
    /// The rank's part of the weights.
    pub fn share(&self) -> Share {
        self.loader.source.share
    }

    /// A bf16 or f32 tensor as the file has it: norms, biases, tables of rows.
    ///
    /// # Errors
    /// As [`load`].
    pub fn plain(&mut self, name: &str, elem: Elem, shape: &[u64]) -> Result<View> {
        let view = self.room.view(Enc::Plain(elem), shape)?;
        self.take(view, &Stored::plain(name, elem, shape, 0..shape[0]))
    }

    /// A bf16 or f32 matrix `[n, k]` of a dense linear.
    ///
    /// # Errors
    /// As [`load`].
    pub fn dense(&mut self, name: &str, elem: Elem, shape: [u64; 2]) -> Result<View> {
        self.dense_rows(name, elem, shape, 0..shape[0])
    }

    /// Some rows of such a matrix.
    ///
    /// # Errors
    /// As [`load`].
    pub fn dense_rows(
        &mut self,
        name: &str,
        elem: Elem,
        shape: [u64; 2],
        rows: Range<u64>,
    ) -> Result<View> {
        let held = [rows.end - rows.start, shape[1]];
        let view = self.room.weight(Class::Dense, Enc::Plain(elem), &held)?;
        self.take(view, &Stored::plain(name, elem, &shape, rows))
    }

    /// An FP8 matrix `[n, k]` with square scale tiles, from `name.weight` and `name.scale`.
    ///
    /// # Errors
    /// As [`load`].
    pub fn mxfp8(&mut self, name: &str, n: u64, k: u64) -> Result<View> {
        let enc = Enc::MXFP8_TILE;
        let view = self.room.weight(Class::Dense, enc, &[n, k])?;
        self.take(view, &Stored::scaled(name, enc, Codes::E4m3, Codes::E4m3Scale, 0..n, k))
    }

    /// FP4 matrices `[n, k]` of the experts `range`, stacked; `name` gives an expert's.
    ///
    /// # Errors
    /// As [`load`].
    pub fn experts(
        &mut self,
        name: impl Fn(u64) -> String,
        range: Range<u64>,
        n: u64,
        k: u64,
    ) -> Result<View> {
        let enc = Enc::MXFP4;
        let shape = [range.end - range.start, n, k];
        let view = self.room.weight(Class::Experts, enc, &shape)?;
        for (part, expert) in range.enumerate() {
            let name = name(expert);
            let stored = Stored::scaled(&name, enc, Codes::E2m1, Codes::E2m1Scale, 0..n, k);
            if self.fill {
                self.loader.fill(&view.part(part as u64)?, &stored)?;
            } else {
                self.loader.read_bytes += stored.bytes();
            }
        }
        Ok(view)
    }

    /// Integers that the engine computed itself.
    ///
    /// # Errors
    /// When the device refuses them.
    pub fn computed(&mut self, values: &[i32]) -> Result<View> {
        let view = self.room.view(Enc::I32, &[values.len() as u64])?;
        if self.fill {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.loader.stream.write(&view, &bytes)?;
        }
        Ok(view)
    }

    fn take(&mut self, view: View, stored: &Stored) -> Result<View> {
        if self.fill {
            self.loader.fill(&view, stored)?;
        } else {
            self.loader.read_bytes += stored.bytes();
        }
        Ok(view)
    }
}
