//! A host tensor that arithmetic reads.

use std::borrow::Cow;
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
    /// Whether there is no element, as for absent operands.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Row `r` as f32: codes times scales; every finite product is exact or rounded once.
    #[inline(always)]
    pub fn row(&self, r: usize) -> Cow<'a, [f32]> {
        let cols = self.cols();
        if self.form == Form32::Expanded || self.enc == Enc::F32 {
            let bytes = &self.codes[self.float_offset(r)..][..cols * 4];
            if let Ok(floats) = bytemuck::try_cast_slice(bytes) {
                return Cow::Borrowed(floats);
            }
        }
        Cow::Owned(match self.enc {
            Enc::Plain(Elem::Bf16) => self.codes[r * self.stride * 2..][..cols * 2]
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
        let first = r / rows as usize * cols.div_ceil(block);
        let mut row = Vec::with_capacity(cols);
        for (b, at) in (0..cols).step_by(block).enumerate() {
            let s = element(scale, self.scales, first + b);
            let end = (at + block).min(cols);
            row.extend((start + at..start + end).map(|i| element(code, self.codes, i) * s));
        }
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

    /// The vector of cache entry `at`; `None` for -1 and for anything outside.
    pub fn entry(&self, at: i32) -> Option<Vec<f32>> {
        let Enc::Record(record) = self.enc else { panic!("only caches have entries") };
        let entries: u64 = self.shape().iter().product();
        let at = u64::try_from(at).ok().filter(|at| *at < entries)?;
        let offset = (at * record.bytes()) as usize;
        Some(decode(record, &self.codes[offset..offset + record.bytes() as usize]))
    }
}

/// The vector that a record's bytes stand for.
fn decode(record: Record, bytes: &[u8]) -> Vec<f32> {
    let width = record.width as usize;
    let blocks = |elem, codes: &[u8], scale, scales: &[u8], per: usize, n: usize| -> Vec<f32> {
        (0..n).map(|i| element(elem, codes, i) * element(scale, scales, i / per)).collect()
    };
    let split = |codes: usize| bytes.split_at(codes);
    match record.form {
        Form::Mxfp8 | Form::Mxfp8Fnuz => {
            let dialect = if record.form == Form::Mxfp8 { Elem::E4m3Fn } else { Elem::E4m3Fnuz };
            let (codes, scales) = split(width);
            blocks(dialect, codes, Elem::Ue8m0, scales, 32, width)
        }
        Form::Nvfp4 => {
            let (codes, scales) = split(width / 2);
            blocks(Elem::E2m1, codes, Elem::E4m3Fn, scales, 16, width)
        }
        Form::Mxfp4 => {
            let (codes, scales) = split(width / 2);
            blocks(Elem::E2m1, codes, Elem::Ue8m0, scales, 32, width)
        }
        Form::Fp8 => {
            let (codes, scales) = split(width);
            blocks(Elem::E4m3Fn, codes, Elem::F32, scales, width, width)
        }
        Form::Fp8Rope => {
            let (codes, rest) = split(width - 64);
            let (rope, scales) = rest.split_at(128);
            let mut x = blocks(Elem::E4m3Fn, codes, Elem::Ue8m0, scales, 64, width - 64);
            x.extend((0..64).map(|i| element(Elem::Bf16, rope, i)));
            x
        }
        Form::Bf16 => (0..width).map(|i| element(Elem::Bf16, bytes, i)).collect(),
        Form::F32 => (0..width).map(|i| element(Elem::F32, bytes, i)).collect(),
    }
}
