//! 32-bit floating-point arithmetic. Approximations of the hardware (reciprocals, roots, powers, logarithms)
//! give the correctly rounded result, from which the hardware's may be one unit off.

use super::row::{Row, one, three, two};

/// The larger; a NaN is passed over where the other is a number, and 0 is above -0.
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || (b > a) || (b == a && a.is_sign_negative()) { b } else { a }
}

/// The smaller, in the same way.
pub(crate) fn smaller(a: f32, b: f32) -> f32 {
    if a.is_nan() || (b < a) || (b == a && b.is_sign_negative()) { b } else { a }
}

fn median(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return smaller(smaller(a, b), c);
    }
    larger(smaller(a, b), smaller(larger(a, b), c))
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = sums();
    rows.extend(functions());
    rows
}

fn sums() -> Vec<Row> {
    vec![
        two("v_add_f32", |a: f32, b: f32| a + b),
        two("v_sub_f32", |a: f32, b: f32| a - b),
        two("v_subrev_f32", |a: f32, b: f32| b - a),
        two("v_mul_f32", |a: f32, b: f32| a * b),
        two("v_mul_legacy_f32", |a: f32, b: f32| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        three("v_fma_f32", |a: f32, b: f32, c: f32| a.mul_add(b, c)),
        three("v_fmac_f32", |a: f32, b: f32, c: f32| a.mul_add(b, c)).accumulates(),
        three("v_fmamk_f32", |a: f32, k: f32, c: f32| a.mul_add(k, c)),
        three("v_fmaak_f32", |a: f32, b: f32, k: f32| a.mul_add(b, k)),
        two("v_max_f32", larger),
        two("v_min_f32", smaller),
        three("v_max3_f32", |a: f32, b: f32, c: f32| larger(larger(a, b), c)),
        three("v_min3_f32", |a: f32, b: f32, c: f32| smaller(smaller(a, b), c)),
        three("v_med3_f32", median),
    ]
}

fn functions() -> Vec<Row> {
    vec![
        one("v_rcp_f32", |a: f32| 1.0 / a),
        one("v_rcp_iflag_f32", |a: f32| 1.0 / a),
        one("v_rsq_f32", |a: f32| (1.0 / f64::from(a).sqrt()) as f32),
        one("v_sqrt_f32", |a: f32| a.sqrt()),
        one("v_exp_f32", |a: f32| libm::exp2(a.into()) as f32),
        one("v_log_f32", |a: f32| libm::log2(a.into()) as f32),
        // Sine and cosine of turns.
        one("v_sin_f32", |a: f32| libm::sin(f64::from(a) * std::f64::consts::TAU) as f32),
        one("v_cos_f32", |a: f32| libm::cos(f64::from(a) * std::f64::consts::TAU) as f32),
        one("v_rndne_f32", |a: f32| a.round_ties_even()),
        one("v_floor_f32", |a: f32| a.floor()),
        one("v_ceil_f32", |a: f32| a.ceil()),
        one("v_trunc_f32", |a: f32| a.trunc()),
        one("v_fract_f32", |a: f32| smaller(a - a.floor(), f32::from_bits(0x3f7f_ffff))),
        two("v_ldexp_f32", |a: f32, power: i32| libm::ldexpf(a, power)),
        one("v_frexp_mant_f32", |a: f32| if a.is_finite() { libm::frexpf(a).0 } else { a }),
        one("v_frexp_exp_i32_f32", |a: f32| if a.is_finite() { libm::frexpf(a).1 } else { 0 }),
    ]
}
