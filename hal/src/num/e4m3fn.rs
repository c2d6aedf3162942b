//! FP8 of the checkpoint: the OCP dialect of E4M3.

use super::minifloat::{decode_magnitude, encode_magnitude};

const SIGN: u8 = 0x80;
const NAN: u8 = 0x7F;
const MANTISSA: u32 = 3;
const BIAS: u32 = 7;

/// A code of E4M3 "fn" (finite, with NaN): sign, 4 exponent bits with bias 7, 3 mantissa bits.
///
/// Largest value 448 (0x7E), smallest normal 2^-6, subnormal step 2^-9, two zeros, NaN 0x7F and
/// 0xFF, no infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct E4m3Fn(pub u8);

impl E4m3Fn {
    /// Largest finite value, where [`from_f32`](Self::from_f32) saturates.
    pub const MAX: f32 = 448.0;
    /// The NaN that the encoder writes.
    pub const NAN: Self = Self(NAN);

    /// Nearest code, ties to even, saturating: everything from 448 up, infinity included, is 0x7E
    /// (0xFE when negative). Minus zero and negative underflow give 0x80. NaN gives 0x7F whatever
    /// its sign.
    #[inline]
    #[must_use]
    pub fn from_f32(x: f32) -> Self {
        if x.is_nan() {
            return Self::NAN;
        }
        let sign = if x.is_sign_negative() { SIGN } else { 0 };
        Self(sign | encode_magnitude::<MANTISSA, BIAS>(x, NAN - 1))
    }

    /// Value of the code; exact.
    #[inline]
    #[must_use]
    pub fn to_f32(self) -> f32 {
        VALUES[usize::from(self.0)]
    }

    /// Whether the code is 0x7F or 0xFF.
    #[inline]
    #[must_use]
    pub const fn is_nan(self) -> bool {
        self.0 & !SIGN == NAN
    }
}

static VALUES: [f32; 256] = {
    let mut values = [f32::NAN; 256];
    let mut code = 0;
    while code < NAN {
        let value = decode_magnitude::<MANTISSA, BIAS>(code);
        values[code as usize] = value;
        values[(code | SIGN) as usize] = -value;
        code += 1;
    }
    values
};
