//! FP8 of gfx942 matrix units: the dialect of E4M3 without minus zero.

use super::E4m3Fn;
use super::minifloat::{decode_magnitude, encode_magnitude};

/// The sign bit; alone, the only NaN.
const SIGN: u8 = 0x80;
const MANTISSA: u32 = 3;
const BIAS: u32 = 8;

/// A code of E4M3 "fnuz" (finite, NaN, unsigned zero): sign, 4 exponent bits with bias 8, 3
/// mantissa bits.
///
/// Largest value 240 (0x7F), smallest normal 2^-7, subnormal step 2^-10, one zero (0x00), NaN 0x80,
/// no infinity. Every finite code is worth half of the same [`E4m3Fn`] code.
///
/// The top of the range is 240, for the cast. A block is quantised to
/// [`BLOCK_LIMIT`](Self::BLOCK_LIMIT) instead, and that constant is the one place that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct E4m3Fnuz(pub u8);

impl E4m3Fnuz {
    /// Largest finite value, where [`from_f32`](Self::from_f32) saturates.
    pub const MAX: f32 = 240.0;
    /// Magnitude to which a block scale maps the block's largest element: half of 448, so that a
    /// block has the same codes in both dialects and a scale that differs by exactly two.
    pub const BLOCK_LIMIT: f32 = 224.0;
    /// The only NaN.
    pub const NAN: Self = Self(SIGN);

    /// Nearest code, ties to even, saturating: everything from 240 up, infinity included, is 0x7F
    /// (0xFF when negative). Minus zero and negative underflow give 0x00, never 0x80. NaN gives
    /// 0x80.
    #[inline]
    #[must_use]
    pub fn from_f32(x: f32) -> Self {
        if x.is_nan() {
            return Self::NAN;
        }
        let magnitude = encode_magnitude::<MANTISSA, BIAS>(x, !SIGN);
        let sign = if x.is_sign_negative() && magnitude != 0 { SIGN } else { 0 };
        Self(sign | magnitude)
    }

    /// The code whose value is exactly half of `code`'s; the block's scale must double with it
    /// (see [`Ue8m0::doubled`](super::Ue8m0::doubled)).
    ///
    /// The bits stay, except that minus zero (0x80) becomes 0x00 and a NaN (0x7F, 0xFF) becomes
    /// 0x80.
    #[inline]
    #[must_use]
    pub const fn half_of(code: E4m3Fn) -> Self {
        if code.is_nan() {
            Self::NAN
        } else if code.0 == SIGN {
            Self(0)
        } else {
            Self(code.0)
        }
    }

    /// Value of the code; exact.
    #[inline]
    #[must_use]
    pub fn to_f32(self) -> f32 {
        VALUES[usize::from(self.0)]
    }

    /// Whether the code is 0x80.
    #[inline]
    #[must_use]
    pub const fn is_nan(self) -> bool {
        self.0 == SIGN
    }
}

static VALUES: [f32; 256] = {
    let mut values = [0.0; 256];
    values[SIGN as usize] = f32::NAN;
    let mut code = 1;
    while code < SIGN {
        let value = decode_magnitude::<MANTISSA, BIAS>(code);
        values[code as usize] = value;
        values[(code | SIGN) as usize] = -value;
        code += 1;
    }
    values
};
