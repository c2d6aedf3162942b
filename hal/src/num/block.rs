//! Scale choices: how a block of values becomes small codes and one scale.
//!
//! | rule | block | floor of amax | scale | element |
//! |---|---|---|---|---|
//! | [`quantise_fp8`] ("Q8") | 32 | 1e-4 | UE8M0, smallest power of two >= amax * (1/448) | [`E4m3Fn`] |
//! | [`quantise_fp8_fnuz`] | 32 | 1e-4 | UE8M0, twice the above (limit 224) | [`E4m3Fnuz`] |
//! | [`quantise_mxfp4`] | 32 | 6 * 2^-126 | UE8M0, smallest power of two >= amax * (1/6) | [`E2m1`] |
//! | [`quantise_nvfp4`] | 16 | 6 * 2^-9 | E4M3, nearest to amax / 6, saturating | [`E2m1`] |
//! | [`quantise_fp8_f32`] | 128 | 1e-4 | f32, amax / 448 | [`E4m3Fn`] |
//!
//! All arithmetic is IEEE f32, subnormals kept. An element is `x / scale` by a true division,
//! with the scale *as stored*, then rounded to nearest even and saturated; multiplying by a
//! reciprocal moves exact ties. Dequantising is `code * scale`. It is exact in f32 for the UE8M0
//! and E4M3 scales, but for one place: rounding up can carry an element past the largest f32, and
//! then it is infinite.
//!
//! A block with a NaN or an infinity gets a NaN scale under every rule, so all of it dequantises
//! to NaN; its codes are those of NaN (0x7F, 0x80, or 7). One that dequantised to something finite
//! would hide the fault, and an infinity cannot be kept by a format that has none. A zero keeps its
//! sign where the element format has one. A block of zeros gets the floor's scale and zero codes.

use super::{E2m1, E4m3Fn, E4m3Fnuz, ScaleOverflow, Ue8m0};

/// Elements under one scale of [`quantise_fp8`] and of [`quantise_fp8_fnuz`].
pub const FP8_BLOCK: usize = 32;
/// Elements under one scale of [`quantise_mxfp4`].
pub const MXFP4_BLOCK: usize = 32;
/// Elements under one scale of [`quantise_nvfp4`].
pub const NVFP4_BLOCK: usize = 16;
/// Elements under one scale of [`quantise_fp8_f32`].
pub const FP8_F32_BLOCK: usize = 128;

const FP8_FLOOR: f32 = 1e-4;
const MXFP4_FLOOR: f32 = 6.0 * f32::MIN_POSITIVE;
const NVFP4_FLOOR: f32 = 6.0 / 512.0;

/// Largest magnitude of `values`; zero for none, NaN when any is NaN.
#[inline]
#[must_use]
pub fn amax(values: &[f32]) -> f32 {
    // As integers, magnitudes order like the values, infinity above them and NaN above infinity.
    let bits = values.iter().map(|x| x.abs().to_bits()).max();
    f32::from_bits(bits.unwrap_or(0))
}

/// `amax`, raised to `floor`; NaN stays.
#[inline]
fn floored(amax: f32, floor: f32) -> f32 {
    // `f32::max` would answer the floor for NaN.
    if amax < floor { floor } else { amax }
}

/// Scale of an FP8 block: the smallest power of two that is not below the f32 product
/// `max(amax, 1e-4) * (1/448)`, so at least 2^-22. NaN when `amax` is NaN or infinite.
#[inline]
#[must_use]
pub fn fp8_scale(amax: f32) -> Ue8m0 {
    Ue8m0::round_up(floored(amax, FP8_FLOOR) * (1.0 / E4m3Fn::MAX))
}

/// Scale of an FP8 block in the fnuz dialect: twice [`fp8_scale`], which is the same rule with the
/// limit [`E4m3Fnuz::BLOCK_LIMIT`].
#[inline]
#[must_use]
pub fn fp8_fnuz_scale(amax: f32) -> Ue8m0 {
    Ue8m0::round_up(floored(amax, FP8_FLOOR) * (1.0 / E4m3Fnuz::BLOCK_LIMIT))
}

/// Scale of an MXFP4 block: the smallest power of two that is not below the f32 product
/// `max(amax, 6 * 2^-126) * (1/6)`, so at least 2^-126. NaN when `amax` is NaN or infinite.
#[inline]
#[must_use]
pub fn mxfp4_scale(amax: f32) -> Ue8m0 {
    Ue8m0::round_up(floored(amax, MXFP4_FLOOR) * (1.0 / E2m1::MAX))
}

/// Scale of an NVFP4 block without a second-level scale: the E4M3 code nearest to
/// `max(amax, 6 * 2^-9) / 6`, at least 2^-9 and at most 448. NaN when `amax` is NaN or infinite.
///
/// The scale can round down, so elements can lie beyond 6 scales (by far, when `amax` passes 2688);
/// they saturate.
#[inline]
#[must_use]
pub fn nvfp4_scale(amax: f32) -> E4m3Fn {
    if !amax.is_finite() {
        return E4m3Fn::NAN;
    }
    E4m3Fn::from_f32(floored(amax, NVFP4_FLOOR) / E2m1::MAX)
}

/// Scale of an FP8 block with an f32 scale: `max(amax, 1e-4) / 448`, a true division. NaN when
/// `amax` is NaN or infinite.
#[inline]
#[must_use]
pub fn fp8_f32_scale(amax: f32) -> f32 {
    if !amax.is_finite() {
        return f32::NAN;
    }
    floored(amax, FP8_FLOOR) / E4m3Fn::MAX
}

/// "Q8": FP8 with a power-of-two scale, for activations and window caches.
#[inline]
#[must_use]
pub fn quantise_fp8(values: &[f32; FP8_BLOCK]) -> (Ue8m0, [E4m3Fn; FP8_BLOCK]) {
    let scale = fp8_scale(amax(values));
    (scale, divide(values, scale.to_f32(), E4m3Fn::from_f32))
}

/// [`quantise_fp8`] in the fnuz dialect: dequantises to the same values, but for the sign of zero.
#[inline]
#[must_use]
pub fn quantise_fp8_fnuz(values: &[f32; FP8_BLOCK]) -> (Ue8m0, [E4m3Fnuz; FP8_BLOCK]) {
    let scale = fp8_fnuz_scale(amax(values));
    (scale, divide(values, scale.to_f32(), E4m3Fnuz::from_f32))
}

/// MXFP4: FP4 with a power-of-two scale, for indexer queries and keys.
#[inline]
#[must_use]
pub fn quantise_mxfp4(values: &[f32; MXFP4_BLOCK]) -> (Ue8m0, [E2m1; MXFP4_BLOCK]) {
    let scale = mxfp4_scale(amax(values));
    (scale, divide(values, scale.to_f32(), E2m1::from_f32))
}

/// NVFP4 without a second-level scale: FP4 with an E4M3 scale, for compressed caches.
#[inline]
#[must_use]
pub fn quantise_nvfp4(values: &[f32; NVFP4_BLOCK]) -> (E4m3Fn, [E2m1; NVFP4_BLOCK]) {
    let scale = nvfp4_scale(amax(values));
    (scale, divide(values, scale.to_f32(), E2m1::from_f32))
}

/// FP8 with one f32 scale over 128 elements.
///
/// This is the activation form of 128-wide GEMMs and, for an index key of 128 dimensions, the
/// whole entry: 128 codes and one f32 scale, 132 bytes. The model itself rounds index keys by
/// [`quantise_mxfp4`], so the 132-byte form is an approximation of it.
#[inline]
#[must_use]
pub fn quantise_fp8_f32(values: &[f32; FP8_F32_BLOCK]) -> (f32, [E4m3Fn; FP8_F32_BLOCK]) {
    let scale = fp8_f32_scale(amax(values));
    (scale, divide(values, scale, E4m3Fn::from_f32))
}

#[inline]
fn divide<C, const N: usize>(values: &[f32; N], scale: f32, encode: fn(f32) -> C) -> [C; N] {
    values.map(|x| encode(x / scale))
}

/// The same block in the fnuz dialect: codes halve, the scale doubles, and every value stays
/// (minus zero loses its sign).
///
/// # Errors
/// [`ScaleOverflow`] when the scale is at its top code.
#[inline]
pub fn requantise_fnuz<const N: usize>(
    scale: Ue8m0,
    codes: &[E4m3Fn; N],
) -> Result<(Ue8m0, [E4m3Fnuz; N]), ScaleOverflow> {
    Ok((scale.doubled()?, codes.map(E4m3Fnuz::half_of)))
}
