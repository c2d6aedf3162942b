//! What to read of a tensor: rows of codes, and the scales that belong to them.

use std::ops::Range;
use std::thread;

use tandem_hal::{Elem, Enc};

use super::checkpoint::{Checkpoint, Tensor};
use super::codes::Codes;
use crate::error::{Error, Result};

/// What to read of a tensor, and of its scales.
pub struct Stored {
    /// Name in the file.
    pub name: String,
    /// What its bytes encode.
    pub codes: Codes,
    /// Rows in the file.
    pub rows_held: u64,
    /// Rows to read.
    pub rows: Range<u64>,
    row_bytes: u64,
    /// Its scales, for encodings that have any.
    pub scales: Option<Scales>,
}

/// Scales of a tensor.
pub struct Scales {
    /// Name in the file.
    pub name: String,
    /// What its bytes encode.
    pub codes: Codes,
    /// Rows in the file.
    pub rows_held: u64,
    /// Rows of codes that one row of scales serves.
    pub rows_per_scale: u64,
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
    /// Rows of a bf16 or f32 tensor.
    pub fn plain(name: &str, elem: Elem, shape: &[u64], rows: Range<u64>) -> Self {
        let codes = if elem == Elem::F32 { Codes::F32 } else { Codes::Bf16 };
        let columns: u64 = shape[1..].iter().product();
        let row_bytes = columns * elem.bits() / 8;
        Self { name: name.into(), codes, rows_held: shape[0], rows, row_bytes, scales: None }
    }

    /// `name.weight` and `name.scale` of a whole matrix.
    pub fn scaled(
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

    /// Whether it is a list of numbers rather than a matrix.
    pub fn is_vector(&self) -> bool {
        self.scales.is_none() && self.row_bytes == self.codes.bytes() as u64
    }

    /// Bytes of codes and of scales of a piece.
    pub fn piece_bytes(&self, piece: &Range<u64>) -> (u64, u64) {
        let rows = piece.end - piece.start;
        let scales = self.scales.as_ref();
        let scales = scales.map_or(0, |s| rows.div_ceil(s.rows_per_scale) * s.row_bytes);
        (rows * self.row_bytes, scales)
    }

    /// Bytes to read, scales included.
    pub fn bytes(&self) -> u64 {
        let scales = self.scales.as_ref();
        let scales = scales.map_or(0, |s| self.rows().div_ceil(s.rows_per_scale) * s.row_bytes);
        self.rows() * self.row_bytes + scales
    }

    /// Rows to read at once, counted from the first row to read.
    pub fn pieces(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let rows = self.rows();
        let fit = (PIECE_BYTES / self.row_bytes.max(1)).max(TILE_ROWS);
        let step = fit / TILE_ROWS * TILE_ROWS;
        (0..rows.div_ceil(step)).map(move |i| i * step..((i + 1) * step).min(rows))
    }
}

/// The rows of a tensor in a file, and those of its scales.
pub struct StoredRows<'a> {
    codes: Rows<'a>,
    scales: Option<Rows<'a>>,
}

impl<'a> StoredRows<'a> {
    /// Those of `stored`.
    ///
    /// # Errors
    /// When a tensor is missing or has another number of rows.
    pub fn of(checkpoint: &'a Checkpoint, stored: &Stored) -> Result<Self> {
        let codes = Rows::of(checkpoint, &stored.name, stored.rows_held)?;
        let scales = stored.scales.as_ref();
        let scales = scales.map(|s| Rows::of(checkpoint, &s.name, s.rows_held)).transpose()?;
        Ok(Self { codes, scales })
    }

    /// Appends a piece: codes, then scales.
    ///
    /// # Errors
    /// [`Error::Tensor`] for NaN weights, or what the system says.
    pub fn read(&self, stored: &Stored, piece: &Range<u64>, to: &mut Vec<u8>) -> Result<()> {
        let rows = stored.rows.start + piece.start..stored.rows.start + piece.end;
        self.codes.read(rows.clone(), stored.codes, to)?;
        if let (Some(scales), Some(rows_of)) = (&stored.scales, &self.scales) {
            let tile = scales.rows_per_scale;
            rows_of.read(rows.start / tile..rows.end.div_ceil(tile), scales.codes, to)?;
        }
        Ok(())
    }
}

/// A tensor of a file as rows of bytes.
pub struct Rows<'a> {
    tensor: Tensor<'a>,
    row_bytes: u64,
}

impl<'a> Rows<'a> {
    /// A tensor that must have `rows` rows.
    ///
    /// # Errors
    /// When it is missing or has another number of rows.
    pub fn of(checkpoint: &'a Checkpoint, name: &str, rows: u64) -> Result<Self> {
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
    pub fn read(&self, rows: Range<u64>, codes: Codes, buffer: &mut Vec<u8>) -> Result<()> {
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
