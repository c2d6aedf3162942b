//! A host tensor that arithmetic writes.

use crate::tensor::{Form32, Tensor};
use tandem_hal::num::{E2m1, Ue8m0, bf16, block};
use tandem_hal::{Elem, Enc, Form, Record, Shape};

/// As [`Tensor`], writable. For judging, a plain output may carry two more buffers of one f64 per
/// element: `magnitude`, the `Σ|terms|` of its bound, and `exact`, the value before its rounding.
#[derive(Debug)]
pub struct TensorMut<'a> {
    pub(crate) enc: Enc,
    pub(crate) shape: Shape,
    /// Units between rows.
    pub(crate) stride: usize,
    pub(crate) codes: &'a mut [u8],
    pub(crate) scales: &'a mut [u8],
    pub(crate) magnitude: Option<&'a mut [f64]>,
    pub(crate) exact: Option<&'a mut [f64]>,
}

impl<'a> TensorMut<'a> {
    /// An encoded tensor over bytes of the right length, dense rows.
    ///
    /// # Panics
    /// When the bytes do not hold the shape: tests and devices pass checked sizes.
    pub fn dense(
        enc: Enc,
        shape: &[u64],
        codes: &'a mut [u8],
        scales: &'a mut [u8],
        magnitude: Option<&'a mut [f64]>,
    ) -> TensorMut<'a> {
        let stride = Tensor::dense(enc, shape, codes, scales).stride;
        TensorMut { enc, shape: Shape::of(shape), stride, codes, scales, magnitude, exact: None }
    }

    /// With a buffer for the values before their rounding, one per element.
    #[must_use]
    pub fn with_exact(mut self, exact: &'a mut [f64]) -> Self {
        self.exact = Some(exact);
        self
    }

    /// The same tensor for a shorter time.
    pub fn reborrow(&mut self) -> TensorMut<'_> {
        TensorMut {
            enc: self.enc,
            shape: self.shape,
            stride: self.stride,
            codes: self.codes,
            scales: self.scales,
            magnitude: self.magnitude.as_deref_mut(),
            exact: self.exact.as_deref_mut(),
        }
    }

    /// Codes from the first row to the last, gaps between rows included, and scales.
    pub fn bytes_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        (self.codes, self.scales)
    }

    /// The same tensor, to read.
    pub fn read(&self) -> Tensor<'_> {
        Tensor {
            enc: self.enc,
            shape: self.shape,
            stride: self.stride,
            form: Form32::Encoded,
            codes: self.codes,
            scales: self.scales,
            part: None,
        }
    }
    /// Extents.
    pub fn shape(&self) -> &[u64] {
        self.shape.dims()
    }
    /// Rows of the last axis.
    pub fn rows(&self) -> usize {
        self.shape.rows().map_or(usize::MAX, |n| n as usize)
    }
    /// Extent of the last axis.
    pub fn cols(&self) -> usize {
        self.shape.cols() as usize
    }
    /// Units from one row of the last axis to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }
    /// Whether there is no element, as for absent operands.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }
    /// Whether magnitudes are asked for.
    pub fn wants_magnitude(&self) -> bool {
        self.magnitude.is_some()
    }

    /// Write row `r` of a plain f32 or bf16 tensor, each value rounded once from f64.
    pub fn set_row(&mut self, r: usize, values: &[f64]) {
        self.set_row_from(r, 0, values);
        self.set_exact(r, values);
    }
    /// As [`TensorMut::set_row`], from column `c` on; the columns before keep every bit.
    pub fn set_row_from(&mut self, r: usize, c: usize, values: &[f64]) {
        let (enc, start) = (self.enc, r * self.stride + c);
        encode_row(enc, &mut self.codes[row_bytes(enc, start, values.len())], values);
    }
    /// State the values of row `r` before their rounding without writing it, if they are asked for.
    pub fn set_exact(&mut self, r: usize, values: &[f64]) {
        let cols = self.cols();
        if let Some(exact) = &mut self.exact {
            exact[r * cols..][..values.len()].copy_from_slice(values);
        }
    }
    /// Write the magnitudes of row `r`, if they are asked for.
    pub fn set_magnitude(&mut self, r: usize, magnitudes: &[f64]) {
        let cols = self.cols();
        if let Some(buffer) = &mut self.magnitude {
            buffer[r * cols..][..magnitudes.len()].copy_from_slice(magnitudes);
        }
    }
    /// Write row `r` of a plain f32 or bf16 tensor from f32 values.
    pub fn set_row_f32(&mut self, r: usize, values: &[f32]) {
        let (enc, start) = (self.enc, r * self.stride);
        encode_row_f32(enc, &mut self.codes[row_bytes(enc, start, values.len())], values);
    }
    /// Write row `r` of integers.
    pub fn set_ints(&mut self, r: usize, values: &[i32]) {
        let start = r * self.stride;
        for (i, v) in values.iter().enumerate() {
            self.codes[4 * (start + i)..][..4].copy_from_slice(&v.to_le_bytes());
        }
    }
    /// Copy the bytes of row `from` of a tensor of the same plain encoding into row `r`.
    pub fn copy_row(&mut self, r: usize, from: &Tensor<'_>, row: usize) {
        let cols = from.cols();
        let bytes = &from.codes[row_bytes(self.enc, row * from.stride, cols)];
        let at = row_bytes(self.enc, r * self.stride, cols);
        self.codes[at].copy_from_slice(bytes);
    }
    /// Set every byte of row `r` of a plain tensor to zero.
    pub fn clear_row(&mut self, r: usize) {
        let at = row_bytes(self.enc, r * self.stride, self.cols());
        self.codes[at].fill(0);
    }

    /// Quantise `values` into row `r` of a block-scaled tensor, by the rules of
    /// [`tandem_hal::num::block`].
    pub fn set_scaled_row(&mut self, r: usize, values: &[f32]) {
        let Enc::Scaled { code, scale, rows: 1, cols } = self.enc else {
            panic!("{:?} has no row-wise scale rule", self.enc)
        };
        let per_row = values.len().div_ceil(cols as usize) * scale.bits() as usize / 8;
        let start = r * self.stride * code.bits() as usize / 8;
        let codes = &mut self.codes[start..][..values.len() * code.bits() as usize / 8];
        let scales = &mut self.scales[r * per_row..][..per_row];
        quantise(code, scale, values, codes, scales);
    }

    /// Each row of a block-scaled tensor as its own writable piece, for threads.
    pub(crate) fn split_scaled_rows(&mut self) -> Vec<ScaledRow<'_>> {
        let Enc::Scaled { code, scale, rows: 1, cols } = self.enc else {
            panic!("{:?} has no row-wise scale rule", self.enc)
        };
        let bytes = |n: usize| n * code.bits() as usize / 8;
        let (step, len) = (bytes(self.stride).max(1), bytes(self.cols()));
        let per_row = self.cols().div_ceil(cols as usize) * scale.bits() as usize / 8;
        let rows = if self.is_empty() { 0 } else { self.rows() };
        let codes = self.codes.chunks_mut(step).take(rows).map(|c| &mut c[..len]);
        codes
            .zip(self.scales.chunks_mut(per_row.max(1)))
            .map(|(codes, scales)| ScaledRow { code, scale, codes, scales })
            .collect()
    }

    /// Encode `values` as cache entry `at`; nothing for -1 and for anything outside.
    pub fn set_entry(&mut self, at: i32, values: &[f32]) {
        let Enc::Record(record) = self.enc else { panic!("only caches have entries") };
        if let Some(bytes) = self.entry_mut(at) {
            encode(record, values, bytes);
        }
    }
    /// Copy the bytes of an entry, as [`entry_bytes`] makes them, to `at`; nothing for -1 and for
    /// anything outside.
    pub(crate) fn set_entry_bytes(&mut self, at: i32, bytes: &[u8]) {
        if let Some(to) = self.entry_mut(at) {
            to.copy_from_slice(bytes);
        }
    }
    fn entry_mut(&mut self, at: i32) -> Option<&mut [u8]> {
        let Enc::Record(record) = self.enc else { panic!("only caches have entries") };
        let entries: u64 = self.shape().iter().product();
        let at = u64::try_from(at).ok().filter(|at| *at < entries)?;
        let offset = (at * record.bytes()) as usize;
        Some(&mut self.codes[offset..offset + record.bytes() as usize])
    }

    /// Each row of a plain tensor as its own writable piece, for threads: `(row, bytes)`.
    pub fn split_rows(&mut self) -> Vec<(usize, &mut [u8])> {
        let bits = self.enc.unit_bits() as usize;
        let (step, len) = (self.stride * bits / 8, self.cols() * bits / 8);
        let rows = if self.is_empty() { 0 } else { self.rows() };
        // The last row may end before a whole stride does.
        self.codes.chunks_mut(step.max(1)).take(rows).map(|c| &mut c[..len]).enumerate().collect()
    }
}

/// One row of a block-scaled tensor.
pub(crate) struct ScaledRow<'a> {
    code: Elem,
    scale: Elem,
    codes: &'a mut [u8],
    scales: &'a mut [u8],
}

impl ScaledRow<'_> {
    /// As [`TensorMut::set_scaled_row`].
    pub(crate) fn set(&mut self, values: &[f32]) {
        quantise(self.code, self.scale, values, self.codes, self.scales);
    }
}

fn row_bytes(enc: Enc, start: usize, len: usize) -> std::ops::Range<usize> {
    let bytes = enc.unit_bits() as usize / 8;
    // A row without columns has no place of its own when rows are apart.
    let start = if len == 0 { 0 } else { start };
    start * bytes..(start + len) * bytes
}

/// Encode results, each rounded once, into the bytes of a row. NaN becomes the one quiet NaN: which
/// bits arithmetic leaves in one depends on the host and on the order of its operands.
#[inline(always)]
pub(crate) fn encode_row(enc: Enc, bytes: &mut [u8], values: &[f64]) {
    let value = |v: &f64| if v.is_nan() { f64::from(f32::NAN) } else { *v };
    match enc {
        Enc::Plain(Elem::F32) => {
            for (to, v) in bytes.chunks_exact_mut(4).zip(values) {
                to.copy_from_slice(&(value(v) as f32).to_le_bytes());
            }
        }
        Enc::Plain(Elem::Bf16) => {
            for (to, v) in bytes.chunks_exact_mut(2).zip(values) {
                to.copy_from_slice(&bf16::from_f64(value(v)).to_le_bytes());
            }
        }
        other => panic!("{other:?} is not written value by value"),
    }
}

/// As [`encode_row`], from f32; NaN keeps what bits it can.
#[inline(always)]
pub(crate) fn encode_row_f32(enc: Enc, bytes: &mut [u8], values: &[f32]) {
    match enc {
        Enc::Plain(Elem::F32) => {
            for (to, v) in bytes.chunks_exact_mut(4).zip(values) {
                to.copy_from_slice(&v.to_le_bytes());
            }
        }
        Enc::Plain(Elem::Bf16) => {
            for (to, v) in bytes.chunks_exact_mut(2).zip(values) {
                to.copy_from_slice(&bf16::from_f32(*v).to_le_bytes());
            }
        }
        other => panic!("{other:?} is not written value by value"),
    }
}

/// Block quantisation of one row.
fn quantise(code: Elem, scale: Elem, values: &[f32], codes: &mut [u8], scales: &mut [u8]) {
    match (code, scale) {
        (Elem::E4m3Fn, Elem::Ue8m0) => {
            for (i, x) in values.as_chunks::<32>().0.iter().enumerate() {
                let (s, q) = block::quantise_fp8(x);
                scales[i] = s.0;
                codes[32 * i..][..32].copy_from_slice(&q.map(|c| c.0));
            }
        }
        (Elem::E4m3Fnuz, Elem::Ue8m0) => {
            for (i, x) in values.as_chunks::<32>().0.iter().enumerate() {
                let (s, q) = block::quantise_fp8_fnuz(x);
                scales[i] = s.0;
                codes[32 * i..][..32].copy_from_slice(&q.map(|c| c.0));
            }
        }
        (Elem::E4m3Fn, Elem::F32) => {
            for (i, x) in values.as_chunks::<128>().0.iter().enumerate() {
                let (s, q) = block::quantise_fp8_f32(x);
                scales[4 * i..][..4].copy_from_slice(&s.to_le_bytes());
                codes[128 * i..][..128].copy_from_slice(&q.map(|c| c.0));
            }
        }
        (Elem::E2m1, Elem::Ue8m0) => {
            for (i, x) in values.as_chunks::<32>().0.iter().enumerate() {
                let (s, q) = block::quantise_mxfp4(x);
                scales[i] = s.0;
                pack(&q, &mut codes[16 * i..][..16]);
            }
        }
        (Elem::E2m1, Elem::E4m3Fn) => {
            for (i, x) in values.as_chunks::<16>().0.iter().enumerate() {
                let (s, q) = block::quantise_nvfp4(x);
                scales[i] = s.0;
                pack(&q, &mut codes[8 * i..][..8]);
            }
        }
        other => panic!("{other:?} has no scale rule"),
    }
}

fn pack(codes: &[E2m1], bytes: &mut [u8]) {
    for (to, pair) in bytes.iter_mut().zip(codes.as_chunks::<2>().0) {
        *to = E2m1::pack(pair[0], pair[1]);
    }
}

/// The bytes of an entry of its own.
pub(crate) fn entry_bytes(record: Record, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; record.bytes() as usize];
    encode(record, values, &mut bytes);
    bytes
}

/// The bytes of a record that stands for `values`.
fn encode(record: Record, values: &[f32], bytes: &mut [u8]) {
    let width = record.width as usize;
    match record.form {
        Form::Mxfp8 => {
            let (codes, scales) = bytes.split_at_mut(width);
            quantise(Elem::E4m3Fn, Elem::Ue8m0, values, codes, scales);
        }
        Form::Mxfp8Fnuz => {
            let (codes, scales) = bytes.split_at_mut(width);
            quantise(Elem::E4m3Fnuz, Elem::Ue8m0, values, codes, scales);
        }
        Form::Nvfp4 => {
            let (codes, scales) = bytes.split_at_mut(width / 2);
            quantise(Elem::E2m1, Elem::E4m3Fn, values, codes, scales);
        }
        Form::Mxfp4 => {
            let (codes, scales) = bytes.split_at_mut(width / 2);
            quantise(Elem::E2m1, Elem::Ue8m0, values, codes, scales);
        }
        Form::Fp8 => {
            let scale = block::fp8_f32_scale(block::amax(values));
            let (codes, scales) = bytes.split_at_mut(width);
            scales.copy_from_slice(&scale.to_le_bytes());
            for (to, v) in codes.iter_mut().zip(values) {
                *to = fp8_code(v / scale);
            }
        }
        Form::Fp8Rope => {
            let (codes, rest) = bytes.split_at_mut(width - 64);
            let (rope, scales) = rest.split_at_mut(128);
            scales.fill(0);
            for (i, x) in values[..width - 64].chunks(64).enumerate() {
                let scale: Ue8m0 = block::fp8_scale(block::amax(x));
                scales[i] = scale.0;
                for (to, v) in codes[64 * i..].iter_mut().zip(x) {
                    *to = fp8_code(v / scale.to_f32());
                }
            }
            encode_row_f32(Enc::BF16, rope, &values[width - 64..]);
        }
        Form::Bf16 => encode_row_f32(Enc::BF16, bytes, values),
        Form::F32 => encode_row_f32(Enc::F32, bytes, values),
    }
}

fn fp8_code(x: f32) -> u8 {
    tandem_hal::num::E4m3Fn::from_f32(x).0
}
