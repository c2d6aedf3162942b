//! The arithmetic that the small signed formats share; the formats say what zero, NaN and the top
//! mean.

/// Bits of an f32 without its sign.
const MAGNITUDE: u32 = 0x7FFF_FFFF;
/// Mantissa bits and exponent bias of f32.
const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;

/// Code of |`x`| with `MANTISSA` mantissa bits and exponent bias `BIAS`, to nearest with ties to
/// even, never above `top`. `x` must not be NaN; an infinity gives `top`.
pub(super) fn encode_magnitude<const MANTISSA: u32, const BIAS: u32>(x: f32, top: u8) -> u8 {
    let bits = x.to_bits() & MAGNITUDE;
    let drop = F32_MANTISSA - MANTISSA;
    let smallest_normal = (F32_BIAS + 1 - BIAS) << F32_MANTISSA;
    let code = if bits < smallest_normal {
        // In f32, adding a power of two whose last place is the format's subnormal step makes the
        // adder round to that step; the step count is then the difference of the bit patterns.
        let anchor = (F32_BIAS + 1 - BIAS + drop) << F32_MANTISSA;
        (f32::from_bits(bits) + f32::from_bits(anchor)).to_bits() - anchor
    } else {
        // Half a step less one, plus one when the kept part is odd: ties go to even. A carry out
        // of the mantissa steps the exponent, which is the next code.
        let odd = (bits >> drop) & 1;
        let rounded = (bits + (1 << (drop - 1)) - 1 + odd) >> drop;
        rounded - ((F32_BIAS - BIAS) << MANTISSA)
    };
    // The comparison comes before the narrowing, so nothing is cut off.
    code.min(u32::from(top)) as u8
}

/// Value of the magnitude code `code`; exact.
pub(super) const fn decode_magnitude<const MANTISSA: u32, const BIAS: u32>(code: u8) -> f32 {
    let mantissa = code as u32 & ((1 << MANTISSA) - 1);
    let exponent = code as u32 >> MANTISSA;
    if exponent == 0 {
        let step = f32::from_bits((F32_BIAS + 1 - BIAS - MANTISSA) << F32_MANTISSA);
        mantissa as f32 * step
    } else {
        let exponent = exponent + F32_BIAS - BIAS;
        f32::from_bits((exponent << F32_MANTISSA) | (mantissa << (F32_MANTISSA - MANTISSA)))
    }
}
