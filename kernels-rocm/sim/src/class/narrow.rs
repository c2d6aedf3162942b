//! 16-bit arithmetic in the low half of a register, and logic by a truth table. The high half of the result is 0.

use super::element::F16;
use super::row::{Row, four, one, three, two};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = integers();
    rows.extend(floats());
    // The table's bit for each combination of three bits, the first operand's the highest.
    rows.push(
        four("v_bitop3_b32", |a: u32, b: u32, c: u32, table: u32| by_table(a, b, c, table))
            .by_table(),
    );
    rows.push(
        four("v_bitop3_b16", |a: u16, b: u16, c: u16, table: u32| {
            by_table(a.into(), b.into(), c.into(), table) as u16
        })
        .by_table(),
    );
    rows
}

fn by_table(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let pick = |x: u32, set: bool| if set { x } else { !x };
    let rows = (0..8).filter(|row| table >> row & 1 != 0);
    rows.fold(0, |result, row| {
        result | pick(a, row & 4 != 0) & pick(b, row & 2 != 0) & pick(c, row & 1 != 0)
    })
}

fn integers() -> Vec<Row> {
    vec![
        two("v_add_u16", |a: u16, b: u16| a.wrapping_add(b)),
        two("v_sub_u16", |a: u16, b: u16| a.wrapping_sub(b)),
        two("v_subrev_u16", |a: u16, b: u16| b.wrapping_sub(a)),
        two("v_mul_lo_u16", |a: u16, b: u16| a.wrapping_mul(b)),
        two("v_min_u16", |a: u16, b: u16| a.min(b)),
        two("v_max_u16", |a: u16, b: u16| a.max(b)),
        two("v_min_i16", |a: i16, b: i16| a.min(b)),
        two("v_max_i16", |a: i16, b: i16| a.max(b)),
        two("v_lshlrev_b16", |a: u16, b: u16| b << (a & 15)),
        two("v_lshrrev_b16", |a: u16, b: u16| b >> (a & 15)),
        two("v_ashrrev_i16", |a: u16, b: i16| b >> (a & 15)),
        three("v_mad_u16", |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)),
        three("v_mad_legacy_u16", |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)),
    ]
}

fn floats() -> Vec<Row> {
    use super::float32::{larger, smaller};
    let binary = |name, f: fn(f32, f32) -> f32| {
        two(name, move |a: F16, b: F16| F16::from_f32(f(a.to_f32(), b.to_f32())))
    };
    let unary = |name, f: fn(f32) -> f32| one(name, move |a: F16| F16::from_f32(f(a.to_f32())));
    let fma = |a: F16, b: F16, c: F16| {
        // Exact but for the last rounding: a product has 22 bits.
        F16::from_f64(f64::from(a.to_f32()) * f64::from(b.to_f32()) + f64::from(c.to_f32()))
    };
    vec![
        // f32 has more than twice the bits, so that rounding twice is rounding once.
        binary("v_add_f16", |a, b| a + b),
        binary("v_sub_f16", |a, b| a - b),
        binary("v_subrev_f16", |a, b| b - a),
        binary("v_mul_f16", |a, b| a * b),
        binary("v_max_f16", larger),
        binary("v_min_f16", smaller),
        three("v_fma_f16", fma),
        three("v_fmac_f16", fma).accumulates(),
        unary("v_rcp_f16", |a| 1.0 / a),
        unary("v_sqrt_f16", f32::sqrt),
        unary("v_rsq_f16", |a| 1.0 / a.sqrt()),
        unary("v_exp_f16", libm::exp2f),
        unary("v_log_f16", libm::log2f),
        unary("v_floor_f16", f32::floor),
        unary("v_ceil_f16", f32::ceil),
        unary("v_trunc_f16", f32::trunc),
        unary("v_rndne_f16", f32::round_ties_even),
    ]
}
