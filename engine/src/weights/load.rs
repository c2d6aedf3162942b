//! Weights onto a device: positioned reads, in the device's own layout, one reservation per module.

use std::ops::Range;
use std::thread;

use tandem_hal::{Class, Device, Elem, Enc, Layout, Place, Stream, View};

use super::checkpoint::{Checkpoint, Tensor};
use super::codes::Codes;
use super::room::Room;
use super::share::Share;
use super::staging::Staging;
use crate::error::{Error, Result};

/// Bytes read so far and bytes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Read, checked and handed to the device.
    pub done_bytes: u64,
    /// To read in all.
    pub total_bytes: u64,
}

/// Where weights come from and what a rank wants of them.
pub struct Source<'a> {
    /// The checkpoint, already checked against its catalogue. `None` reserves the memory and leaves
    /// its content unspecified, which is all a planning device needs.
    pub checkpoint: Option<&'a Checkpoint>,
    /// The rank's part.
    pub share: Share,
    /// Where tables of rows lie.
    pub tables: Place,
}

/// Loads a model's weights. `build` runs twice: once to add up what is to be read, and once to read
/// it; it must ask for the same modules both times.
///
/// # Errors
/// [`Error::Tensor`] for NaN weights and unreadable tensors, memory that is not there, or what
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
        Ok(Self { device, source, stream, staging, report, read_bytes: 0 })
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
        let Some(checkpoint) = self.source.checkpoint else {
            self.read_bytes += stored.bytes();
            return Ok(());
        };
        if view.layout() == Layout::Plain {
            return self.write(view, stored, checkpoint);
        }
        let plain =
            self.staging.view(self.device, self.stream.as_ref(), view.enc(), view.shape())?;
        self.write(&plain, stored, checkpoint)?;
        Ok(self.device.pack(&plain, view, self.stream.as_ref())?)
    }

    /// The same into a plain view, in pieces.
    fn write(&mut self, view: &View, stored: &Stored, checkpoint: &Checkpoint) -> Result<()> {
        let codes = Rows::of(checkpoint, &stored.name, stored.rows_held)?;
        let scales = stored.scales.as_ref();
        let scales = scales
            .map(|s| Ok::<_, Error>((s, Rows::of(checkpoint, &s.name, s.rows_held)?)))
            .transpose()?;
        for piece in stored.pieces() {
            let file_rows = stored.rows.start + piece.start..stored.rows.start + piece.end;
            let buffer = self.staging.host();
            buffer.clear();
            codes.read(file_rows.clone(), stored.codes, buffer)?;
            if let Some((scales, rows)) = &scales {
                let tile = scales.rows_per_scale;
                let blocks = file_rows.start / tile..file_rows.end.div_ceil(tile);
                rows.read(blocks, scales.codes, buffer)?;
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

/// What to read of a tensor, and of its scales.
struct Stored {
    name: String,
    codes: Codes,
    /// Rows in the file.
    rows_held: u64,
    /// Rows to read.
    rows: Range<u64>,
    row_bytes: u64,
    scales: Option<Scales>,
}

struct Scales {
    name: String,
    codes: Codes,
    rows_held: u64,
    rows_per_scale: u64,
    row_bytes: u64,
}

/// Bytes of codes read at once.
const PIECE_BYTES: u64 = 32 << 20;
/// Rows of a piece are whole scale tiles.
const TILE_ROWS: u64 = 32;
/// Threads that share a read.
const READERS: usize = 8;
/// Bytes that are not worth another thread.
const PART_BYTES: usize = 1 << 20;

impl Stored {
    fn plain(name: &str, elem: Elem, shape: &[u64], rows: Range<u64>) -> Self {
        let codes = if elem == Elem::F32 { Codes::F32 } else { Codes::Bf16 };
        let columns: u64 = shape[1..].iter().product();
        let row_bytes = columns * elem.bits() / 8;
        Self { name: name.into(), codes, rows_held: shape[0], rows, row_bytes, scales: None }
    }

    /// `name.weight` and `name.scale` of a whole matrix.
    fn scaled(
        name: &str,
        enc: Enc,
        codes: Codes,
        scale_codes: Codes,
        rows: Range<u64>,
        columns: u64,
    ) -> Self {
        let (block_rows, block_columns) = match enc {
            Enc::Scaled { rows, cols, .. } => (u64::from(rows), u64::from(cols)),
            Enc::Plain(_) | Enc::Record(_) => (1, 1),
        };
        let scales = Scales {
            name: format!("{name}.scale"),
            codes: scale_codes,
            rows_held: rows.end.div_ceil(block_rows),
            rows_per_scale: block_rows,
            row_bytes: columns.div_ceil(block_columns),
        };
        Self {
            name: format!("{name}.weight"),
            codes,
            rows_held: rows.end,
            rows,
            row_bytes: columns * enc.unit_bits() / 8,
            scales: Some(scales),
        }
    }

    fn rows(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    fn bytes(&self) -> u64 {
        let scales = self.scales.as_ref();
        let scales = scales.map_or(0, |s| self.rows().div_ceil(s.rows_per_scale) * s.row_bytes);
        self.rows() * self.row_bytes + scales
    }

    /// Rows to read at once, counted from the first row to read.
    fn pieces(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let rows = self.rows();
        let fit = (PIECE_BYTES / self.row_bytes.max(1)).max(TILE_ROWS);
        let step = fit / TILE_ROWS * TILE_ROWS;
        (0..rows.div_ceil(step)).map(move |i| i * step..((i + 1) * step).min(rows))
    }
}

/// A tensor of a file as rows of bytes.
struct Rows<'a> {
    tensor: Tensor<'a>,
    row_bytes: u64,
}

impl<'a> Rows<'a> {
    fn of(checkpoint: &'a Checkpoint, name: &str, rows: u64) -> Result<Self> {
        let missing = || Error::checkpoint(format!("tensor {name} is missing"));
        let tensor = checkpoint.tensor(name).ok_or_else(missing)?;
        let row_bytes = tensor.row_bytes(0)?.end;
        if tensor.length_bytes() != rows * row_bytes {
            let problem = format!("shape {:?} does not have {rows} rows", tensor.shape());
            return Err(Error::tensor(tensor.file(), name, problem));
        }
        Ok(Self { tensor, row_bytes })
    }

    /// Appends rows to `buffer`, and refuses what no weight may hold. Long reads are shared among
    /// threads: one request at a time leaves most of a disk's speed unused.
    fn read(&self, rows: Range<u64>, codes: Codes, buffer: &mut Vec<u8>) -> Result<()> {
        let start = buffer.len();
        let (offset, bytes) =
            (rows.start * self.row_bytes, (rows.end - rows.start) * self.row_bytes);
        buffer.resize(start + bytes as usize, 0);
        let into = &mut buffer[start..];
        let part = into.len().div_ceil(READERS).next_multiple_of(PART_BYTES);
        if into.len() <= part {
            return self.read_part(offset, codes, into);
        }
        thread::scope(|scope| {
            let parts = into.chunks_mut(part).enumerate().map(|(i, into)| {
                let offset = offset + (i * part) as u64;
                scope.spawn(move || self.read_part(offset, codes, into))
            });
            let parts: Vec<_> = parts.collect();
            let mut joined = parts.into_iter().map(thread::ScopedJoinHandle::join);
            joined.try_for_each(|part| part.expect("a reader does not panic"))
        })
    }

    fn read_part(&self, offset: u64, codes: Codes, into: &mut [u8]) -> Result<()> {
        self.tensor.read_at(offset, into)?;
        let Some((fault, byte)) = codes.first_bad(into) else { return Ok(()) };
        let problem = format!(
            "NaN weights: {fault} at byte {}; the file is damaged, fetch it again",
            offset + byte as u64
        );
        Err(Error::tensor(self.tensor.file(), self.tensor.name(), problem))
    }
}
