//! The three instructions that turn an approximate reciprocal into a correctly rounded quotient: scale the
//! operands away from overflow and underflow, scale the quotient back, and settle the special cases.

use super::row::{Row, four, three};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        three("v_div_scale_f32", |x: f32, denominator: f32, numerator: f32| {
            let (power, flag) = scale_f32(x, denominator, numerator);
            (if power == NAN { f32::NAN } else { libm::ldexpf(x, power) }, flag)
        }),
        three("v_div_scale_f64", |x: f64, denominator: f64, numerator: f64| {
            let (power, flag) = scale_f64(x, denominator, numerator);
            (if power == NAN { f64::NAN } else { libm::ldexp(x, power) }, flag)
        }),
        four("v_div_fmas_f32", |a: f32, b: f32, c: f32, scaled: bool| {
            let power = if exponent_f32(c) > 127 { 64 } else { -64 };
            let wide = f64::from(a).mul_add(b.into(), c.into());
            if scaled { libm::ldexp(wide, power) as f32 } else { a.mul_add(b, c) }
        })
        .reads_vcc(),
        four("v_div_fmas_f64", |a: f64, b: f64, c: f64, scaled: bool| {
            let power = if exponent_f64(c) > 1023 { 128 } else { -128 };
            if scaled { scaled_sum_f64(a, b, c, power) } else { a.mul_add(b, c) }
        })
        .reads_vcc(),
        three("v_div_fixup_f32", |quotient: f32, denominator: f32, numerator: f32| {
            let apart = exponent_f32(numerator) - exponent_f32(denominator);
            let fixed = fixup(quotient.into(), denominator.into(), numerator.into(), apart < -150);
            // Only a NaN's payload is lost on the way.
            fixed as f32
        }),
        three("v_div_fixup_f64", |quotient: f64, denominator: f64, numerator: f64| {
            let apart = exponent_f64(numerator) - exponent_f64(denominator);
            fixup(quotient, denominator, numerator, apart < -1075)
        }),
    ]
}

/// (a b + c) times a power of two, rounded once even where the result is subnormal.
fn scaled_sum_f64(a: f64, b: f64, c: f64, power: i32) -> f64 {
    let sum = a.mul_add(b, c);
    let scaled = libm::ldexp(sum, power);
    let cut = sum - libm::ldexp(scaled, -power);
    let half_a_step = libm::ldexp(1.0, -1075 - power);
    if scaled.is_finite() && scaled.abs() < f64::MIN_POSITIVE && cut.abs() == half_a_step {
        // A tie, if the sum was exact; otherwise what its rounding took decides.
        let rest = a.mul_add(b, c - sum);
        if rest != 0.0 && rest.is_sign_negative() == cut.is_sign_negative() {
            return scaled + 5e-324f64.copysign(cut);
        }
    }
    scaled
}

/// Stands for a result that is not a number.
const NAN: i32 = i32::MAX;

/// The exponent's field.
fn exponent_f32(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32
}

fn exponent_f64(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32
}

/// What distinguishes the two formats.
struct Format {
    /// From this distance of exponents on the quotient may overflow.
    far: i32,
    /// Up to this exponent the numerator's error terms may be lost.
    tiny: i32,
    power: i32,
}

/// The power of two that an operand is scaled by, and whether the quotient is to be scaled back.
fn scale(
    f: &Format,
    is_denominator: bool,
    apart: i32,
    denominator: Size,
    quotient: Size,
    tiny: bool,
) -> (i32, bool) {
    let if_denominator = |power| if is_denominator { power } else { 0 };
    if apart >= f.far {
        (if_denominator(f.power), true)
    } else if denominator == Size::Subnormal {
        (f.power, false)
    } else if denominator == Size::Huge && quotient == Size::Subnormal {
        (if_denominator(-f.power), true)
    } else if denominator == Size::Huge {
        (-f.power, false)
    } else if quotient == Size::Subnormal {
        (if is_denominator { 0 } else { f.power }, true)
    } else if tiny {
        (f.power, false)
    } else {
        (0, false)
    }
}

/// As far as scaling cares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Subnormal,
    Ordinary,
    /// The reciprocal is subnormal.
    Huge,
}

fn scale_f32(x: f32, denominator: f32, numerator: f32) -> (i32, bool) {
    if denominator == 0.0 || numerator == 0.0 {
        return (NAN, false);
    }
    let size = if denominator.is_subnormal() {
        Size::Subnormal
    } else if (1.0 / f64::from(denominator)).abs() < f64::from(f32::MIN_POSITIVE) {
        Size::Huge
    } else {
        Size::Ordinary
    };
    let quotient = (f64::from(numerator) / f64::from(denominator)).abs();
    let is_small = quotient < f64::from(f32::MIN_POSITIVE);
    let apart = exponent_f32(numerator) - exponent_f32(denominator);
    let format = Format { far: 96, tiny: 23, power: 64 };
    let tiny = exponent_f32(numerator) <= format.tiny;
    let quotient = if is_small { Size::Subnormal } else { Size::Ordinary };
    scale(&format, x.to_bits() == denominator.to_bits(), apart, size, quotient, tiny)
}

fn scale_f64(x: f64, denominator: f64, numerator: f64) -> (i32, bool) {
    if denominator == 0.0 || numerator == 0.0 {
        return (NAN, false);
    }
    let size = if denominator.is_subnormal() {
        Size::Subnormal
    } else if (1.0 / denominator).abs() < f64::MIN_POSITIVE {
        Size::Huge
    } else {
        Size::Ordinary
    };
    let is_small = (numerator / denominator).abs() < f64::MIN_POSITIVE;
    let apart = exponent_f64(numerator) - exponent_f64(denominator);
    let format = Format { far: 768, tiny: 53, power: 128 };
    let tiny = exponent_f64(numerator) <= format.tiny;
    let quotient = if is_small { Size::Subnormal } else { Size::Ordinary };
    scale(&format, x.to_bits() == denominator.to_bits(), apart, size, quotient, tiny)
}

/// The quotient, or what a special case gives.
fn fixup(quotient: f64, denominator: f64, numerator: f64, underflows: bool) -> f64 {
    let is_negative = numerator.is_sign_negative() != denominator.is_sign_negative();
    let signed = |size: f64| if is_negative { -size } else { size };
    if numerator.is_nan() || denominator.is_nan() {
        f64::NAN
    } else if numerator == 0.0 && denominator == 0.0
        || numerator.is_infinite() && denominator.is_infinite()
    {
        -f64::NAN
    } else if denominator == 0.0 || numerator.is_infinite() {
        signed(f64::INFINITY)
    } else if denominator.is_infinite() || numerator == 0.0 || underflows {
        signed(0.0)
    } else if quotient.is_nan() {
        // The steps before ran over.
        signed(f64::INFINITY)
    } else {
        signed(quotient.abs())
    }
}
