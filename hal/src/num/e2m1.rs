//! FP4 of the experts and of the compressed caches.

use super::minifloat::{decode_magnitude, encode_magnitude};
use super::{E4m3Fn, E4m3Fnuz};

/// Sign bit of a 4-bit code.
const SIGN: u8 = 0x8;
const TOP: u8 = 0x7;
const MANTISSA: u32 = 1;
const BIAS: u32 = 1;

/// A code of E2M1 in the low four bits: sign, 2 exponent bits with bias 1, 1 mantissa bit.
///
/// Codes 0 to 7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign, and both zeros exist. There is
/// no NaN and no infinity. The upper four bits of the byte are zero in every code made here and are
/// ignored when decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct E2m1(pub u8);

impl E2m1 {
    /// Largest value, where [`from_f32`](Self::from_f32) saturates.
    pub const MAX: f32 = 6.0;

    /// Nearest code, ties to even, saturating at 6 (code 7; 15 when negative), infinity included.
    /// Minus zero and negative underflow give code 8.
    ///
    /// The format has no NaN: a NaN gives code 7 whatever its sign, and the block's scale is what
    /// keeps it (see [`block`](super::block)).
    #[inline]
    #[must_use]
    pub fn from_f32(x: f32) -> Self {
        if x.is_nan() {
            return Self(TOP);
        }
        let sign = if x.is_sign_negative() { SIGN } else { 0 };
        Self(sign | encode_magnitude::<MANTISSA, BIAS>(x, TOP))
    }

    /// Value of the code; exact.
    #[inline]
    #[must_use]
    pub fn to_f32(self) -> f32 {
        VALUES[usize::from(self.0 & 0xF)]
    }

    /// Two codes as the byte of a packed row: the even column in the low nibble.
    #[inline]
    #[must_use]
    pub const fn pack(even: Self, odd: Self) -> u8 {
        (even.0 & 0xF) | (odd.0 << 4)
    }

    /// Even and odd column of a packed byte.
    #[inline]
    #[must_use]
    pub const fn unpack(byte: u8) -> [Self; 2] {
        [Self(byte & 0xF), Self(byte >> 4)]
    }
}

/// Exact widening; minus zero keeps its sign.
impl From<E2m1> for E4m3Fn {
    #[inline]
    fn from(code: E2m1) -> Self {
        const WIDE: [u8; 8] = [0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C];
        Self(WIDE[usize::from(code.0 & TOP)] | ((code.0 & SIGN) << 4))
    }
}

/// Exact widening; minus zero becomes the only zero.
impl From<E2m1> for E4m3Fnuz {
    #[inline]
    fn from(code: E2m1) -> Self {
        const WIDE: [u8; 16] = [
            0x00, 0x38, 0x40, 0x44, 0x48, 0x4C, 0x50, 0x54, // 0 to 6
            0x00, 0xB8, 0xC0, 0xC4, 0xC8, 0xCC, 0xD0, 0xD4, // -0 to -6
        ];
        Self(WIDE[usize::from(code.0 & 0xF)])
    }
}

static VALUES: [f32; 16] = {
    let mut values = [0.0; 16];
    let mut code = 0;
    while code <= TOP {
        let value = decode_magnitude::<MANTISSA, BIAS>(code);
        values[code as usize] = value;
        values[(code | SIGN) as usize] = -value;
        code += 1;
    }
    values
};
