//! 64-bit floating-point arithmetic. The hardware's first approximations of reciprocals and roots are good to
//! about 24 bits; so that nobody relies on more, the rest is cut off here.

use super::row::{Row, one, three, two};

/// The larger; a NaN is passed over where the other is a number, and 0 is above -0.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || (b > a) || (b == a && a.is_sign_negative()) { b } else { a }
}

/// The smaller, in the same way.
fn smaller(a: f64, b: f64) -> f64 {
    if a.is_nan() || (b < a) || (b == a && b.is_sign_negative()) { b } else { a }
}

/// The first 24 bits of the fraction.
fn cut(x: f64) -> f64 {
    if x.is_finite() { f64::from_bits(x.to_bits() & !0x0fff_ffff) } else { x }
}

/// What the reciprocal's approximation gives.
fn reciprocal(x: f64) -> f64 {
    cut(1.0 / x)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        two("v_add_f64", |a: f64, b: f64| a + b),
        two("v_mul_f64", |a: f64, b: f64| a * b),
        three("v_fma_f64", |a: f64, b: f64, c: f64| a.mul_add(b, c)),
        three("v_fmac_f64", |a: f64, b: f64, c: f64| a.mul_add(b, c)).accumulates(),
        two("v_max_f64", larger),
        two("v_min_f64", smaller),
        one("v_rcp_f64", reciprocal),
        one("v_rsq_f64", |a: f64| cut(1.0 / a.sqrt())),
        one("v_sqrt_f64", |a: f64| cut(a.sqrt())),
        one("v_rndne_f64", |a: f64| a.round_ties_even()),
        one("v_floor_f64", |a: f64| a.floor()),
        one("v_ceil_f64", |a: f64| a.ceil()),
        one("v_trunc_f64", |a: f64| a.trunc()),
        one("v_fract_f64", |a: f64| smaller(a - a.floor(), f64::from_bits(0x3fef_ffff_ffff_ffff))),
        two("v_ldexp_f64", |a: f64, power: i32| libm::ldexp(a, power)),
        one("v_frexp_mant_f64", |a: f64| if a.is_finite() { libm::frexp(a).0 } else { a }),
        one("v_frexp_exp_i32_f64", |a: f64| if a.is_finite() { libm::frexp(a).1 } else { 0 }),
    ]
}
