//! bfloat16: the upper half of an f32 (8 exponent bits, 7 mantissa bits).
//!
//! Values travel as `u16` bit patterns. Every rounding is to nearest with ties to even; a finite
//! value at or beyond the midpoint above the largest bf16 becomes an infinity of its sign, and
//! subnormals and signed zeros are kept. A NaN stays a NaN: it is made quiet and keeps its sign and
//! the upper seven bits of its payload.

use half::bf16;

/// Rounds an f32 to bf16 bits.
#[inline]
#[must_use]
pub fn from_f32(x: f32) -> u16 {
    bf16::from_f32(x).to_bits()
}

/// Rounds an f64 to bf16 bits, once: the same as rounding the exact value.
///
/// Neither going through a rounded f32 nor dropping the low half of the f64 (as the library's own
/// conversion does) gives this: both turn a value just beside a midpoint into a tie.
#[inline]
#[must_use]
pub fn from_f64(x: f64) -> u16 {
    from_f32(f32_to_odd(x))
}

/// Decodes bf16 bits; exact.
#[inline]
#[must_use]
pub fn to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bf16 nearest to `x`, as an f32.
#[inline]
#[must_use]
pub fn round_f32(x: f32) -> f32 {
    to_f32(from_f32(x))
}

/// The bf16 nearest to `x`, rounded once, as an f32.
#[inline]
#[must_use]
pub fn round_f64(x: f64) -> f32 {
    to_f32(from_f64(x))
}

/// Rounds to f32 so that an inexact result has an odd last bit. The odd bit remembers on which side
/// of every shorter value `x` lies, so one more rounding to nearest is correct.
fn f32_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if x.is_nan() || f64::from(nearest) == x || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The nearest value is even, so the neighbour on the other side of `x` is odd. It has the same
    // sign: magnitudes grow with the bit pattern, zero and infinity included.
    let bits = nearest.to_bits();
    let outward = f64::from(nearest).abs() < x.abs();
    f32::from_bits(if outward { bits + 1 } else { bits - 1 })
}
