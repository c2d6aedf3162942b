//! Encodings of bytes: what one code is, and how codes share scales.

use crate::{Line, Record};

choice! {
    /// The encoding of one element. There is no "fp8": the two dialects are two elements.
    pub enum Elem {
        /// IEEE single.
        F32 = "f32",
        /// bfloat16.
        Bf16 = "bf16",
        /// OCP FP8, 4 exponent bits, finite only: largest 448, NaN 0x7F and 0xFF.
        E4m3Fn = "e4m3fn",
        /// The FP8 of gfx942: largest 240, one NaN 0x80, no minus zero.
        E4m3Fnuz = "e4m3fnuz",
        /// FP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and signs; two codes a byte, low nibble first.
        E2m1 = "e2m1",
        /// A power of two, 2^(byte-127); 255 is NaN.
        Ue8m0 = "ue8m0",
        /// Signed 32-bit integer, little-endian.
        I32 = "i32",
        /// Unsigned 32-bit integer, little-endian.
        U32 = "u32",
        /// A byte.
        U8 = "u8",
    }
}

impl Elem {
    /// Bits of one element.
    pub const fn bits(self) -> u64 {
        match self {
            Elem::F32 | Elem::I32 | Elem::U32 => 32,
            Elem::Bf16 => 16,
            Elem::E2m1 => 4,
            Elem::E4m3Fn | Elem::E4m3Fnuz | Elem::Ue8m0 | Elem::U8 => 8,
        }
    }
}

/// How the bytes of a tensor encode its elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Enc {
    /// One code per element.
    Plain(Elem),
    /// Codes and their scales, one scale per `rows x cols` codes, `cols` along the last axis. All
    /// codes come first, then the scales, row-major over the blocks.
    Scaled {
        /// Encoding of the codes.
        code: Elem,
        /// Encoding of the scales.
        scale: Elem,
        /// Rows per scale.
        rows: u16,
        /// Columns per scale.
        cols: u16,
    },
    /// Entries of a cache: codes and scales interleaved, a fixed number of bytes each.
    Record(Record),
}

impl Enc {
    /// Plain `f32`.
    pub const F32: Enc = Enc::Plain(Elem::F32);
    /// Plain `bf16`.
    pub const BF16: Enc = Enc::Plain(Elem::Bf16);
    /// Plain `i32`.
    pub const I32: Enc = Enc::Plain(Elem::I32);
    /// Plain `u32`.
    pub const U32: Enc = Enc::Plain(Elem::U32);
    /// Plain bytes.
    pub const U8: Enc = Enc::Plain(Elem::U8);
    /// Activations: E4M3 codes, one UE8M0 scale per 32 of a row.
    pub const Q8: Enc = Enc::scaled(Elem::E4m3Fn, Elem::Ue8m0, 1, 32);
    /// Dense weights: E4M3 codes, one UE8M0 scale per 32 x 32 tile.
    pub const MXFP8_TILE: Enc = Enc::scaled(Elem::E4m3Fn, Elem::Ue8m0, 32, 32);
    /// Dense weights of V4 checkpoints: one UE8M0 scale per 128 x 128 tile.
    pub const MXFP8_TILE128: Enc = Enc::scaled(Elem::E4m3Fn, Elem::Ue8m0, 128, 128);
    /// Activations with one f32 scale per 128 of a row.
    pub const FP8_ROW128: Enc = Enc::scaled(Elem::E4m3Fn, Elem::F32, 1, 128);
    /// Expert weights and index vectors: E2M1 codes, one UE8M0 scale per 32 of a row.
    pub const MXFP4: Enc = Enc::scaled(Elem::E2m1, Elem::Ue8m0, 1, 32);
    /// Compressed latents: E2M1 codes, one E4M3 scale per 16 of a row, no second level.
    pub const NVFP4: Enc = Enc::scaled(Elem::E2m1, Elem::E4m3Fn, 1, 16);
    /// [`Enc::MXFP8_TILE`] in the dialect of gfx942.
    pub const MXFP8_TILE_FNUZ: Enc = Enc::scaled(Elem::E4m3Fnuz, Elem::Ue8m0, 32, 32);
    /// [`Enc::Q8`] in the dialect of gfx942.
    pub const Q8_FNUZ: Enc = Enc::scaled(Elem::E4m3Fnuz, Elem::Ue8m0, 1, 32);

    /// Codes with scales.
    pub const fn scaled(code: Elem, scale: Elem, rows: u16, cols: u16) -> Enc {
        Enc::Scaled { code, scale, rows, cols }
    }
    /// Bits of one unit: an element, a code, or a whole record.
    pub const fn unit_bits(self) -> u64 {
        match self {
            Enc::Plain(e) => e.bits(),
            Enc::Scaled { code, .. } => code.bits(),
            Enc::Record(r) => r.bytes() * 8,
        }
    }
}

impl Line for Enc {
    fn print(&self, to: &mut String) {
        match self {
            Enc::Plain(e) => e.print(to),
            Enc::Scaled { code, scale, rows, cols } => {
                to.push_str(&format!("{}/{}/{rows}x{cols}", code.name(), scale.name()));
            }
            Enc::Record(r) => r.print(to),
        }
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        if text.contains(':') {
            return Record::parse(text).map(Enc::Record);
        }
        let mut parts = text.split('/');
        let code = Elem::parse(parts.next().unwrap_or_default())?;
        let (Some(scale), Some(block)) = (parts.next(), parts.next()) else {
            return Ok(Enc::Plain(code));
        };
        let bad = || format!("'{block}' is not a block such as 1x32");
        let (rows, cols) = block.split_once('x').ok_or_else(bad)?;
        Ok(Enc::Scaled {
            code,
            scale: Elem::parse(scale)?,
            rows: rows.parse().map_err(|_| bad())?,
            cols: cols.parse().map_err(|_| bad())?,
        })
    }
}
