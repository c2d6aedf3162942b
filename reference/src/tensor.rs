//! A host tensor that arithmetic reads.

use std::borrow::Cow;
use std::sync::LazyLock;
use tandem_hal::num::{E2m1, E4m3Fn, E4m3Fnuz, Ue8m0, bf16};
use tandem_hal::{Elem, Enc, Form, Record, Shape};

/// How the bytes of a reference tensor are arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form32 {
    /// As the encoding says.
    Encoded,
    /// Weights expanded to f32, row-major: the private layout of the reference device.
    Expanded,
}

/// Bytes and what they mean. Rows are those of the last axis.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    pub(crate) enc: Enc,
    pub(crate) shape: Shape,
    /// Units between rows.
    pub(crate) stride: usize,
    pub(crate) form: Form32,
    pub(crate) codes: &'a [u8],
    pub(crate) scales: &'a [u8],
    /// Bytes from one part of a stacked expanded weight to the next.
    pub(crate) part: Option<usize>,
}

/// Element `i` of plain codes.
#[inline(always)]
pub(crate) fn element(elem: Elem, codes: &[u8], i: usize) -> f32 {
    match elem {
        Elem::F32 => f32::from_le_bytes(word(codes, i)),
        Elem::I32 => i32::from_le_bytes(word(codes, i)) as f32,
        Elem::U32 => u32::from_le_bytes(word(codes, i)) as f32,
        Elem::Bf16 => bf16::to_f32(u16::from_le_bytes([codes[2 * i], codes[2 * i + 1]])),
        Elem::E4m3Fn => E4m3Fn(codes[i]).to_f32(),
        Elem::E4m3Fnuz => E4m3Fnuz(codes[i]).to_f32(),
        Elem::E2m1 => E2m1::unpack(codes[i / 2])[i % 2].to_f32(),
        Elem::Ue8m0 => Ue8m0(codes[i]).to_f32(),
        Elem::U8 => f32::from(codes[i]),
    }
}

#[inline(always)]
fn word(codes: &[u8], i: usize) -> [u8; 4] {
    codes[4 * i..4 * i + 4].try_into().expect("four bytes")
}

impl<'a> Tensor<'a> {
    /// An encoded tensor over bytes of the right length, dense rows.
    ///
    /// # Panics
    /// When the bytes do not hold the shape: tests and devices pass checked sizes.
    pub fn dense(enc: Enc, shape: &[u64], codes: &'a [u8], scales: &'a [u8]) -> Tensor<'a> {
        let (code_bytes, scale_bytes) =
            tandem_hal::View::size(enc, shape).expect("a host tensor fits 64 bits");
        let fits = codes.len() as u64 >= code_bytes && scales.len() as u64 >= scale_bytes;
        assert!(fits, "{enc:?} {shape:?} needs {code_bytes} and {scale_bytes} bytes");
        let shape = Shape::of(shape);
        let (stride, form) = (shape.cols() as usize, Form32::Encoded);
        Tensor { enc, shape, stride, form, codes, scales, part: None }
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

    /// Codes from the first row to the last, gaps between rows included, and scales.
    pub fn bytes(&self) -> (&'a [u8], &'a [u8]) {
        (self.codes, self.scales)
    }
    /// Codes and scales without gaps between rows.
    pub fn to_dense(&self) -> (Vec<u8>, Vec<u8>) {
        let bits = self.enc.unit_bits() as usize;
        let (step, len) = (self.stride * bits / 8, self.cols() * bits / 8);
        if self.is_empty() || self.stride == self.cols() || step == 0 {
            return (self.codes.to_vec(), self.scales.to_vec());
        }
        let rows = self.codes.chunks(step).take(self.rows());
        (rows.flat_map(|row| &row[..len]).copied().collect(), self.scales.to_vec())
    }

    /// Row `r` as f32: codes times scales; every finite product is exact or rounded once.
    #[inline(always)]
    pub fn row(&self, r: usize) -> Cow<'a, [f32]> {
        let cols = self.cols();
        if cols == 0 {
            return Cow::Borrowed(&[]);
        }
        if self.form == Form32::Expanded || self.enc == Enc::F32 {
            let bytes = &self.codes[self.float_offset(r)..][..cols * 4];
            if let Ok(floats) = bytemuck::try_cast_slice(bytes) {
                return Cow::Borrowed(floats);
            }
        }
        Cow::Owned(match self.enc {
            Enc::Plain(Elem::Bf16) if self.form == Form32::Encoded => self.codes
                [r * self.stride * 2..][..cols * 2]
                .as_chunks::<2>()
                .0
                .iter()
                .map(|bytes| bf16::to_f32(u16::from_le_bytes(*bytes)))
                .collect(),
            Enc::Scaled { .. } if self.form == Form32::Encoded => self.scaled_row(r),
            _ => (0..cols).map(|c| self.at(r, c)).collect(),
        })
    }

    /// As [`Tensor::row`], each scale read once.
    fn scaled_row(&self, r: usize) -> Vec<f32> {
        let Enc::Scaled { code, scale, rows, cols: block } = self.enc else {
            panic!("{:?} has no scales", self.enc)
        };
        let (cols, block, start) = (self.cols(), block as usize, r * self.stride);
        let bits = code.bits() as usize;
        if !(start * bits).is_multiple_of(8) {
            return (0..cols).map(|c| self.at(r, c)).collect();
        }
        let first = r / rows as usize * cols.div_ceil(block) * scale.bits() as usize / 8;
        let mut row = vec![0.0; cols];
        scaled(
            code,
            &self.codes[start * bits / 8..],
            scale,
            &self.scales[first..],
            block,
            &mut row,
        );
        row
    }

    /// First byte of row `r` of an f32 or expanded tensor.
    fn float_offset(&self, r: usize) -> usize {
        let row_bytes = self.stride * 4;
        match self.part {
            None => r * row_bytes,
            Some(part_bytes) => {
                let rows = self.shape()[1] as usize;
                r / rows * part_bytes + r % rows * row_bytes
            }
        }
    }

    /// Element `c` of row `r`.
    #[inline(always)]
    pub fn at(&self, r: usize, c: usize) -> f32 {
        if self.form == Form32::Expanded {
            return element(Elem::F32, self.codes, self.float_offset(r) / 4 + c);
        }
        let i = r * self.stride + c;
        match self.enc {
            Enc::Plain(elem) => element(elem, self.codes, i),
            Enc::Scaled { code, scale, rows, cols } => {
                let per_row = self.cols().div_ceil(cols as usize);
                let block = r / rows as usize * per_row + c / cols as usize;
                element(code, self.codes, i) * element(scale, self.scales, block)
            }
            Enc::Record(_) => panic!("records are read by entry, not by element"),
        }
    }

    /// Integer `c` of row `r`.
    pub fn int(&self, r: usize, c: usize) -> i32 {
        i32::from_le_bytes(word(self.codes, r * self.stride + c))
    }
    /// Unsigned word `c` of row `r`.
    pub fn unsigned(&self, r: usize, c: usize) -> u32 {
        u32::from_le_bytes(word(self.codes, r * self.stride + c))
    }
    /// Row `r` of integers.
    pub fn ints(&self, r: usize) -> Vec<i32> {
        (0..self.cols()).map(|c| self.int(r, c)).collect()
    }

    /// Entries of a cache.
    pub fn entries(&self) -> u64 {
        self.shape().iter().product()
    }
    /// The vector of cache entry `at`; `None` for -1 and for anything outside.
    pub fn entry(&self, at: i32) -> Option<Vec<f32>> {
        let mut values = vec![0.0; self.record().width as usize];
        self.entry_into(at, &mut values).then_some(values)
    }
    /// Decode cache entry `at` into `to`; false, and nothing written, for -1 and for anything
    /// outside.
    pub fn entry_into(&self, at: i32, to: &mut [f32]) -> bool {
        let record = self.record();
        let Some(at) = u64::try_from(at).ok().filter(|at| *at < self.entries()) else {
            return false;
        };
        let offset = (at * record.bytes()) as usize;
        decode(record, &self.codes[offset..offset + record.bytes() as usize], to);
        true
    }

    fn record(&self) -> Record {
        let Enc::Record(record) = self.enc else { panic!("only caches have entries") };
        record
    }
}

/// The two values of every packed byte.
static E2M1_PAIRS: LazyLock<[[f32; 2]; 256]> =
    LazyLock::new(|| std::array::from_fn(|byte| E2m1::unpack(byte as u8).map(E2m1::to_f32)));

/// Codes from the start of `codes` times their scales, `per` codes a scale, the last block cut at
/// the end of `to`.
fn scaled(code: Elem, codes: &[u8], scale: Elem, scales: &[u8], per: usize, to: &mut [f32]) {
    let pairs = &*E2M1_PAIRS;
    for (block, to) in to.chunks_mut(per).enumerate() {
        let scale = element(scale, scales, block);
        let codes = &codes[block * per * code.bits() as usize / 8..];
        match code {
            Elem::E4m3Fn => {
                for (to, c) in to.iter_mut().zip(codes) {
                    *to = E4m3Fn(*c).to_f32() * scale;
                }
            }
            Elem::E2m1 => {
                let (even, odd) = to.as_chunks_mut::<2>();
                let last = codes.get(even.len());
                for (to, byte) in even.iter_mut().zip(codes) {
                    *to = pairs[usize::from(*byte)].map(|v| v * scale);
                }
                for (to, byte) in odd.iter_mut().zip(last) {
                    *to = pairs[usize::from(*byte)][0] * scale;
                }
            }
            _ => {
                for (i, to) in to.iter_mut().enumerate() {
                    *to = element(code, codes, i) * scale;
                }
            }
        }
    }
}

/// The vector that a record's bytes stand for.
fn decode(record: Record, bytes: &[u8], to: &mut [f32]) {
    let width = record.width as usize;
    let plain = |elem, bytes: &[u8], to: &mut [f32]| {
        for (i, to) in to.iter_mut().enumerate() {
            *to = element(elem, bytes, i);
        }
    };
    match record.form {
        Form::Mxfp8 => scaled(Elem::E4m3Fn, bytes, Elem::Ue8m0, &bytes[width..], 32, to),
        Form::Mxfp8Fnuz => scaled(Elem::E4m3Fnuz, bytes, Elem::Ue8m0, &bytes[width..], 32, to),
        Form::Nvfp4 => scaled(Elem::E2m1, bytes, Elem::E4m3Fn, &bytes[width / 2..], 16, to),
        Form::Mxfp4 => scaled(Elem::E2m1, bytes, Elem::Ue8m0, &bytes[width / 2..], 32, to),
        Form::Fp8 => scaled(Elem::E4m3Fn, bytes, Elem::F32, &bytes[width..], width, to),
        Form::Fp8Rope => {
            let (codes, rest) = bytes.split_at(width - 64);
            let (rope, scales) = rest.split_at(128);
            let (to, last) = to.split_at_mut(width - 64);
            scaled(Elem::E4m3Fn, codes, Elem::Ue8m0, scales, 64, to);
            plain(Elem::Bf16, rope, last);
        }
        Form::Bf16 => plain(Elem::Bf16, bytes, to),
        Form::F32 => plain(Elem::F32, bytes, to),
    }
}
