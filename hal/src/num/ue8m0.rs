//! Power-of-two block scales.

use std::fmt;

const NAN: u8 = 0xFF;
const TOP: u8 = 0xFE;

/// A code of UE8M0: byte `b` is the scale 2^(b - 127); 0xFF is NaN. No sign, no zero, no infinity.
///
/// Code 0 is 2^-127, which is a subnormal in f32. The default is code 0, not the scale one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Ue8m0(pub u8);

/// A UE8M0 scale at its top code was asked to double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleOverflow;

impl fmt::Display for ScaleOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "UE8M0 scale 2^127 (code 254) cannot double: requantise the block to a smaller scale",
        )
    }
}

impl std::error::Error for ScaleOverflow {}

impl Ue8m0 {
    /// The scale 1.
    pub const ONE: Self = Self(127);
    /// The NaN scale: everything under it is NaN.
    pub const NAN: Self = Self(NAN);

    /// The smallest power of two that is not below `x`, from its exponent and mantissa bits (a
    /// logarithm is one binade short just above a power of two).
    ///
    /// Zero and everything up to 2^-127 give code 0. NaN, an infinity, a negative value, and a
    /// value above 2^127 (which has no power of two to round up to) give NaN, so a scale that is
    /// too small never comes out.
    #[inline]
    #[must_use]
    pub const fn round_up(x: f32) -> Self {
        let bits = x.to_bits();
        let (exponent, mantissa) = (bits >> 23, bits & 0x007F_FFFF);
        match exponent {
            // Subnormal: the binades under code 1 end at 2^-127, mantissa 0x40_0000.
            0 => Self((mantissa > 0x0040_0000) as u8),
            // The sum is at most 255, which is NaN.
            1..=254 => Self((exponent + (mantissa != 0) as u32) as u8),
            // Infinity, NaN, or a sign bit. Minus zero is zero.
            _ if bits == 0x8000_0000 => Self(0),
            _ => Self::NAN,
        }
    }

    /// The code of `x` when `x` is exactly a scale of the format, and none otherwise.
    ///
    /// The way in for scales that a file keeps as f32: a mantissa is never dropped. NaN is none.
    #[inline]
    #[must_use]
    pub fn exact(x: f32) -> Option<Self> {
        let code = Self::round_up(x);
        (code.to_f32() == x).then_some(code)
    }

    /// Value of the code; exact, NaN for 0xFF.
    #[inline]
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        match self.0 {
            0 => f32::from_bits(0x0040_0000),
            NAN => f32::NAN,
            code => f32::from_bits((code as u32) << 23),
        }
    }

    /// Whether the code is 0xFF.
    #[inline]
    #[must_use]
    pub const fn is_nan(self) -> bool {
        self.0 == NAN
    }

    /// Twice the scale; NaN stays NaN.
    ///
    /// # Errors
    /// [`ScaleOverflow`] at code 254, whose double would read as NaN.
    #[inline]
    pub const fn doubled(self) -> Result<Self, ScaleOverflow> {
        match self.0 {
            TOP => Err(ScaleOverflow),
            NAN => Ok(Self::NAN),
            code => Ok(Self(code + 1)),
        }
    }
}
