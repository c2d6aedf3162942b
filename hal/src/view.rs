//! Handles on device bytes.

use crate::{Device, DeviceId, Elem, Enc, Error, Place, Result};
use std::{any::Any, ops::Range, sync::Arc};

/// Bytes are carved and guarded in steps of this many.
const ALIGN: u64 = 256;

/// One reservation of memory. Freed when the last view, stream or graph that holds it is gone.
pub struct Alloc {
    /// Unique among all reservations of a process.
    pub id: u64,
    /// The device that owns it.
    pub device: DeviceId,
    /// Where it lies.
    pub place: Place,
    /// Usable bytes.
    pub bytes: u64,
    /// What it is for, as the ledger prints it.
    pub purpose: String,
    /// The backend's own handle.
    pub inner: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Alloc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Alloc({}, {} bytes for {})", self.id, self.bytes, self.purpose)
    }
}

/// How bytes are arranged. Private layouts belong to a backend; only [`View::part`] may address
/// inside them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// Row-major, as the checkpoint and the contract have it.
    Plain,
    /// A backend's own arrangement, by its number.
    Private(u32),
}

/// Extents of a tensor, at most four.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u64; 4],
    rank: u8,
}

impl Shape {
    /// From a slice of one to four extents.
    ///
    /// # Panics
    /// When there are none or more than four: shapes are written by programmers, not by users.
    pub fn of(dims: &[u64]) -> Shape {
        assert!(matches!(dims.len(), 1..=4), "a shape has one to four dims, not {}", dims.len());
        let mut shape = Shape { dims: [1; 4], rank: dims.len() as u8 };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }
    /// The extents.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..self.rank as usize]
    }
    /// Elements, unless that overflows 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.dims().iter().try_fold(1u64, |a, &b| a.checked_mul(b))
    }
    /// Extent of the last axis.
    pub fn cols(&self) -> u64 {
        self.dims[self.rank as usize - 1]
    }
    /// Product of all axes but the last, unless that overflows.
    pub fn rows(&self) -> Option<u64> {
        let dims = self.dims();
        dims[..dims.len() - 1].iter().try_fold(1u64, |a, &b| a.checked_mul(b))
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

/// Which bytes, and what they mean. A cheap handle that holds its memory alive, not a borrow.
///
/// `offset` is the first byte of the codes, `scales` that of the scales; both 64-bit. `stride` is
/// the distance in units between neighbouring rows of the last axis.
#[derive(Clone, Debug)]
pub struct View {
    alloc: Arc<Alloc>,
    offset: u64,
    scales: u64,
    enc: Enc,
    layout: Layout,
    shape: Shape,
    /// Units between rows; for a private layout, its bytes.
    stride: u64,
}

fn bad(operand: &'static str, why: impl Into<String>) -> Error {
    Error::BadOperand { op: "view", operand, why: why.into() }
}

impl View {
    /// Bytes of codes and of scales of a dense tensor, unless they overflow 64 bits.
    pub fn size(enc: Enc, shape: &[u64]) -> Option<(u64, u64)> {
        let shape = Shape::of(shape);
        let units = shape.elements()?;
        let codes = units.checked_mul(enc.unit_bits())?.div_ceil(8);
        let scales = match enc {
            Enc::Scaled { scale, rows, cols, .. } => shape
                .rows()?
                .div_ceil(u64::from(rows))
                .checked_mul(shape.cols().div_ceil(u64::from(cols)))?
                .checked_mul(scale.bits() / 8)?,
            Enc::Plain(_) | Enc::Record(_) => 0,
        };
        Some((codes, scales))
    }

    /// Bytes that [`Arena::view`] takes for a dense tensor, alignment included; `u64::MAX` when
    /// that overflows, which no reservation grants.
    pub fn reserved_bytes(enc: Enc, shape: &[u64]) -> u64 {
        let aligned = |b: u64| b.checked_next_multiple_of(ALIGN);
        Self::size(enc, shape)
            .and_then(|(codes, scales)| aligned(codes)?.checked_add(aligned(scales)?))
            .unwrap_or(u64::MAX)
    }

    /// A dense tensor at `offset` of a reservation; scales follow the codes at the next multiple
    /// of 256.
    ///
    /// # Errors
    /// When its bytes pass the end or 64 bits.
    pub fn dense(alloc: &Arc<Alloc>, offset: u64, enc: Enc, shape: &[u64]) -> Result<View> {
        let overflow = || bad("shape", "size overflows 64 bits");
        let (codes, scale_bytes) = Self::size(enc, shape).ok_or_else(overflow)?;
        let end = offset.checked_add(codes).ok_or_else(overflow)?;
        // Without scales their empty span stays inside the reservation.
        let aligned = end.checked_next_multiple_of(ALIGN).ok_or_else(overflow)?;
        let scales = if scale_bytes == 0 { end } else { aligned };
        let last = scales.checked_add(scale_bytes).ok_or_else(overflow)?;
        if last > alloc.bytes {
            let why = format!("ends at byte {last} of {} for {}", alloc.bytes, alloc.purpose);
            return Err(bad("shape", why));
        }
        let shape = Shape::of(shape);
        let (alloc, layout) = (alloc.clone(), Layout::Plain);
        Ok(View { alloc, offset, scales, enc, layout, shape, stride: shape.cols() })
    }

    /// `bytes` at `offset` that hold a tensor in a backend's own layout.
    ///
    /// # Errors
    /// When the bytes pass the end.
    pub fn private(
        alloc: &Arc<Alloc>,
        offset: u64,
        enc: Enc,
        shape: &[u64],
        layout: Layout,
        bytes: u64,
    ) -> Result<View> {
        let end = offset.checked_add(bytes).filter(|end| *end <= alloc.bytes);
        let end = end.ok_or_else(|| bad("layout", "past the end of its memory"))?;
        let (alloc, shape) = (alloc.clone(), Shape::of(shape));
        Ok(View { alloc, offset, scales: end, enc, layout, shape, stride: bytes })
    }

    /// The operand that is not there: no elements, no memory, fits every device.
    pub fn absent(enc: Enc) -> View {
        let alloc = Arc::new(Alloc {
            id: 0,
            device: DeviceId(0),
            place: Place::Device,
            bytes: 0,
            purpose: "absent".into(),
            inner: Box::new(()),
        });
        let (shape, layout) = (Shape::of(&[0]), Layout::Plain);
        View { alloc, offset: 0, scales: 0, enc, layout, shape, stride: 0 }
    }

    /// Part `i` of the first axis of `[parts, …]`: the only way into a private layout, and an
    /// ordinary slice of a plain one.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn part(&self, i: u64) -> Result<View> {
        let dims = self.shape();
        if dims.len() < 3 || i >= dims[0] {
            return Err(bad("part", format!("no part {i} in {:?}", self.shape)));
        }
        if self.layout == Layout::Plain {
            let mut part = self.rows(i..i + 1)?;
            part.shape = Shape::of(&self.shape()[1..]);
            return Ok(part);
        }
        let bytes = self.stride / dims[0];
        Self::private(
            &self.alloc,
            self.offset + i * bytes,
            self.enc,
            &dims[1..],
            self.layout,
            bytes,
        )
    }

    /// Rows `range` of the first axis.
    ///
    /// # Errors
    /// For a private layout, a range outside, or one that cuts a scale block or a byte.
    pub fn rows(&self, range: Range<u64>) -> Result<View> {
        if self.layout != Layout::Plain {
            return Err(bad("rows", "a private layout has parts, not rows"));
        }
        let dims = self.shape();
        if range.start > range.end || range.end > dims[0] {
            return Err(bad("rows", format!("{range:?} of {:?}", self.shape)));
        }
        let inner: u64 = if dims.len() < 2 { 1 } else { dims[1..dims.len() - 1].iter().product() };
        let units = range.start * inner * if dims.len() == 1 { 1 } else { self.stride };
        let bits = units * self.enc.unit_bits();
        if !bits.is_multiple_of(8) {
            return Err(bad("rows", "cuts a byte"));
        }
        let mut view = self.clone();
        view.shape.dims[0] = range.end - range.start;
        view.offset += bits / 8;
        if let Enc::Scaled { rows, cols, scale, .. } = self.enc {
            if !(range.start * inner).is_multiple_of(u64::from(rows)) {
                return Err(bad("rows", "cuts a scale block"));
            }
            let per_row = self.shape.cols().div_ceil(u64::from(cols)) * scale.bits() / 8;
            view.scales += range.start * inner / u64::from(rows) * per_row;
        }
        Ok(view)
    }

    /// Columns `range` of the last axis of a plain encoding of whole bytes.
    ///
    /// # Errors
    /// For other encodings and ranges outside.
    pub fn cols(&self, range: Range<u64>) -> Result<View> {
        let sliceable = matches!(self.enc, Enc::Plain(e) if e.bits() >= 8);
        if !sliceable || self.layout != Layout::Plain {
            return Err(bad("cols", format!("{:?} is not sliceable by columns", self.enc)));
        }
        if range.start > range.end || range.end > self.shape.cols() {
            return Err(bad("cols", format!("{range:?} of {:?}", self.shape)));
        }
        let mut view = self.clone();
        view.offset += range.start * self.enc.unit_bits() / 8;
        view.shape.dims[self.shape.rank as usize - 1] = range.end - range.start;
        Ok(view)
    }

    /// The last axis seen as `[a, b]`; the tensor must be dense and plain.
    ///
    /// # Errors
    /// When `a * b` is not the last extent.
    pub fn split_last(&self, a: u64, b: u64) -> Result<View> {
        let last = self.shape.cols();
        let fits = a.checked_mul(b) == Some(last) && self.is_dense() && self.shape.rank < 4;
        if !fits || matches!(self.enc, Enc::Record(_)) || self.cuts_scales(b) {
            return Err(bad(
                "split_last",
                format!("{:?} is not {a} x {b}, or not dense", self.shape),
            ));
        }
        let mut view = self.clone();
        view.shape.dims[self.shape.rank as usize - 1] = a;
        view.shape.dims[self.shape.rank as usize] = b;
        view.shape.rank += 1;
        view.stride = b;
        Ok(view)
    }

    /// The last two axes seen as one; the tensor must be dense and plain.
    ///
    /// # Errors
    /// When it has one axis only, or rows apart.
    pub fn join_last(&self) -> Result<View> {
        if self.shape.rank < 2 || !self.is_dense() || self.cuts_scales(self.shape.cols()) {
            return Err(bad("join_last", format!("{:?} has one axis or is not dense", self.shape)));
        }
        let mut view = self.clone();
        let last = view.shape.cols();
        view.shape.rank -= 1;
        view.shape.dims[view.shape.rank as usize - 1] *= last;
        view.shape.dims[view.shape.rank as usize] = 1;
        view.stride = view.shape.cols();
        Ok(view)
    }

    /// Whether rows of `cols` would cut a scale block that spans rows or columns.
    fn cuts_scales(&self, cols_per_row: u64) -> bool {
        match self.enc {
            Enc::Scaled { rows, cols, .. } => {
                rows != 1 || !cols_per_row.is_multiple_of(u64::from(cols))
            }
            Enc::Plain(_) | Enc::Record(_) => false,
        }
    }

    /// The reservation behind the view.
    pub fn alloc(&self) -> &Arc<Alloc> {
        &self.alloc
    }
    /// What the bytes encode.
    pub fn enc(&self) -> Enc {
        self.enc
    }
    /// How they are arranged.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Logical extents.
    pub fn shape(&self) -> &[u64] {
        self.shape.dims()
    }
    /// Units between neighbouring rows of the last axis; for a private layout, its bytes.
    pub fn stride(&self) -> u64 {
        self.stride
    }
    /// First byte of the codes within the reservation.
    pub fn offset(&self) -> u64 {
        self.offset
    }
    /// First byte of the scales within the reservation.
    pub fn scale_offset(&self) -> u64 {
        self.scales
    }
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }
    /// Whether rows follow each other without gaps.
    pub fn is_dense(&self) -> bool {
        self.layout == Layout::Plain && (self.stride == self.shape.cols() || self.row_count() <= 1)
    }
    /// Rows of the last axis.
    pub fn row_count(&self) -> u64 {
        self.shape.rows().unwrap_or(u64::MAX)
    }
    /// Bytes of codes and scales, as [`crate::Stream::write`] takes and `read` gives them.
    pub fn bytes(&self) -> u64 {
        match self.layout {
            Layout::Private(_) => self.stride,
            Layout::Plain => Self::size(self.enc, self.shape()).map_or(u64::MAX, |(c, s)| c + s),
        }
    }

    /// Byte ranges a kernel may touch: codes, then scales.
    pub fn spans(&self) -> [Range<u64>; 2] {
        if self.layout != Layout::Plain {
            return [self.offset..self.offset + self.stride, self.scales..self.scales];
        }
        if self.is_empty() {
            return [self.offset..self.offset, self.scales..self.scales];
        }
        let units = (self.row_count() - 1) * self.stride + self.shape.cols();
        let codes = (units * self.enc.unit_bits()).div_ceil(8);
        let scales = Self::size(self.enc, self.shape()).map_or(0, |(_, s)| s);
        [self.offset..self.offset + codes, self.scales..self.scales + scales]
    }

    /// Whether two views share a byte.
    pub fn overlaps(&self, other: &View) -> bool {
        let share = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start) < a.end.min(b.end);
        self.alloc.id == other.alloc.id
            && self.spans().iter().any(|a| other.spans().iter().any(|b| share(a, b)))
    }

    /// The bytes of the codes as a plain tensor of bytes.
    ///
    /// # Errors
    /// When the view is not dense.
    pub fn as_bytes(&self) -> Result<View> {
        if self.layout == Layout::Plain && !self.is_dense() {
            return Err(bad("as_bytes", "not dense"));
        }
        let [codes, _] = self.spans();
        View::dense(&self.alloc, codes.start, Enc::Plain(Elem::U8), &[codes.end - codes.start])
    }
}

/// Carves views out of one reservation, front to back. Views outlive the arena.
pub struct Arena {
    alloc: Arc<Alloc>,
    at: u64,
}

impl Arena {
    /// Reserve `bytes` on `device` for `purpose`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the device has less.
    pub fn new(device: &dyn Device, bytes: u64, purpose: &str) -> Result<Arena> {
        Ok(Arena { alloc: device.allocate(bytes, Place::Device, purpose)?, at: 0 })
    }

    /// The next dense tensor; takes [`View::reserved_bytes`].
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming the arena's purpose when it is used up.
    pub fn view(&mut self, enc: Enc, shape: &[u64]) -> Result<View> {
        let wanted = View::reserved_bytes(enc, shape);
        self.take(wanted)?;
        let view = View::dense(&self.alloc, self.at, enc, shape)?;
        self.at += wanted;
        Ok(view)
    }

    /// The next tensor in a private layout of `bytes`.
    ///
    /// # Errors
    /// As [`Arena::view`].
    pub fn private(&mut self, enc: Enc, shape: &[u64], layout: Layout, bytes: u64) -> Result<View> {
        let wanted = bytes.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX);
        self.take(wanted)?;
        let view = View::private(&self.alloc, self.at, enc, shape, layout, bytes)?;
        self.at += wanted;
        Ok(view)
    }

    fn take(&self, wanted: u64) -> Result<()> {
        let free = self.alloc.bytes - self.at;
        if wanted <= free {
            return Ok(());
        }
        Err(Error::OutOfMemory { wanted, free, purpose: self.alloc.purpose.clone() })
    }

    /// Bytes carved so far.
    pub fn used_bytes(&self) -> u64 {
        self.at
    }
}
