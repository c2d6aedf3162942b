//! Scalar sums, products, comparisons and choices.

use super::scalar::{Inputs, Outcome, Row, condition, flagged, value};

/// The low half of a word with its sign, which an instruction's 16-bit number is.
fn short(x: u64) -> i32 {
    i32::from(x as i16)
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = sums();
    rows.extend(products());
    rows.extend(choices());
    rows.extend(comparisons());
    rows
}

fn word(
    name: &'static str,
    run: impl Fn(u32, u32, bool) -> Outcome + Send + Sync + 'static,
) -> Row {
    Row::new(name, 1, &[1, 1], move |i: Inputs| run(i.a as u32, i.b as u32, i.condition))
}

fn signed(name: &'static str, run: impl Fn(i32, i32) -> Outcome + Send + Sync + 'static) -> Row {
    Row::new(name, 1, &[1, 1], move |i: Inputs| run(i.a as i32, i.b as i32))
}

fn sums() -> Vec<Row> {
    let shifted = |name, by: u32| {
        Row::new(name, 1, &[1, 1], move |i: Inputs| {
            let sum = (i.a << by) + i.b;
            flagged(sum as u32, sum >> 32 != 0)
        })
    };
    let add_signed = |a: i32, b: i32| {
        let (sum, overflow) = a.overflowing_add(b);
        flagged(sum as u32, overflow)
    };
    vec![
        word("s_add_u32", |a, b, _| {
            let (sum, carry) = a.overflowing_add(b);
            flagged(sum, carry)
        }),
        word("s_addc_u32", |a, b, carry| {
            let sum = u64::from(a) + u64::from(b) + u64::from(carry);
            flagged(sum as u32, sum >> 32 != 0)
        }),
        word("s_sub_u32", |a, b, _| {
            let (difference, borrow) = a.overflowing_sub(b);
            flagged(difference, borrow)
        }),
        word("s_subb_u32", |a, b, borrow| {
            let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
            flagged(difference as u32, difference < 0)
        }),
        signed("s_add_i32", add_signed),
        signed("s_sub_i32", |a, b| {
            let (difference, overflow) = a.overflowing_sub(b);
            flagged(difference as u32, overflow)
        }),
        Row::new("s_addk_i32", 1, &[1, 1], move |i| add_signed(i.a as i32, short(i.b)))
            .accumulates(),
        signed("s_absdiff_i32", |a, b| {
            let difference = a.wrapping_sub(b).unsigned_abs();
            flagged(difference, difference != 0)
        }),
        Row::new("s_abs_i32", 1, &[1], |i| {
            let size = (i.a as i32).unsigned_abs();
            flagged(size, size != 0)
        }),
        shifted("s_lshl1_add_u32", 1),
        shifted("s_lshl2_add_u32", 2),
        shifted("s_lshl3_add_u32", 3),
        shifted("s_lshl4_add_u32", 4),
    ]
}

fn products() -> Vec<Row> {
    vec![
        word("s_mul_i32", |a, b, _| value(a.wrapping_mul(b))),
        Row::new("s_mulk_i32", 1, &[1, 1], |i| value((i.a as i32).wrapping_mul(short(i.b)) as u32))
            .accumulates(),
        word("s_mul_hi_u32", |a, b, _| value(((u64::from(a) * u64::from(b)) >> 32) as u32)),
        signed("s_mul_hi_i32", |a, b| value(((i64::from(a) * i64::from(b)) >> 32) as u32)),
    ]
}

fn choices() -> Vec<Row> {
    vec![
        Row::new("s_mov_b32", 1, &[1], |i| value(i.a)),
        Row::new("s_mov_b64", 2, &[2], |i| value(i.a)),
        Row::new("s_movk_i32", 1, &[1], |i| value(short(i.a) as u32)),
        Row::new("s_cmov_b32", 1, &[1], |i| Outcome {
            value: i.condition.then_some(i.a),
            condition: None,
        }),
        Row::new("s_cmov_b64", 2, &[2], |i| Outcome {
            value: i.condition.then_some(i.a),
            condition: None,
        }),
        word("s_cselect_b32", |a, b, first| value(if first { a } else { b })),
        Row::new("s_cselect_b64", 2, &[2, 2], |i| value(if i.condition { i.a } else { i.b })),
        word("s_min_u32", |a, b, _| flagged(a.min(b), a < b)),
        word("s_max_u32", |a, b, _| flagged(a.max(b), a > b)),
        signed("s_min_i32", |a, b| flagged(a.min(b) as u32, a < b)),
        signed("s_max_i32", |a, b| flagged(a.max(b) as u32, a > b)),
        Row::new("s_sext_i32_i8", 1, &[1], |i| value(i32::from(i.a as i8) as u32)),
        Row::new("s_sext_i32_i16", 1, &[1], |i| value(short(i.a) as u32)),
        word("s_pack_ll_b32_b16", |a, b, _| value(a & 0xffff | b << 16)),
        word("s_pack_lh_b32_b16", |a, b, _| value(a & 0xffff | b & 0xffff_0000)),
        word("s_pack_hh_b32_b16", |a, b, _| value(a >> 16 | b & 0xffff_0000)),
    ]
}

fn comparisons() -> Vec<Row> {
    let unsigned = |name, holds: fn(u32, u32) -> bool| {
        Row::new(name, 0, &[1, 1], move |i| condition(holds(i.a as u32, i.b as u32)))
    };
    let signed = |name, holds: fn(i32, i32) -> bool| {
        Row::new(name, 0, &[1, 1], move |i| condition(holds(i.a as i32, i.b as i32)))
    };
    // The number in the encoding has 16 bits.
    let short_unsigned = |name, holds: fn(u32, u32) -> bool| {
        Row::new(name, 0, &[1, 1], move |i| condition(holds(i.a as u32, i.b as u32 & 0xffff)))
    };
    let short_signed = |name, holds: fn(i32, i32) -> bool| {
        Row::new(name, 0, &[1, 1], move |i| condition(holds(i.a as i32, short(i.b))))
    };
    vec![
        unsigned("s_cmp_eq_u32", |a, b| a == b),
        unsigned("s_cmp_lg_u32", |a, b| a != b),
        unsigned("s_cmp_gt_u32", |a, b| a > b),
        unsigned("s_cmp_ge_u32", |a, b| a >= b),
        unsigned("s_cmp_lt_u32", |a, b| a < b),
        unsigned("s_cmp_le_u32", |a, b| a <= b),
        signed("s_cmp_eq_i32", |a, b| a == b),
        signed("s_cmp_lg_i32", |a, b| a != b),
        signed("s_cmp_gt_i32", |a, b| a > b),
        signed("s_cmp_ge_i32", |a, b| a >= b),
        signed("s_cmp_lt_i32", |a, b| a < b),
        signed("s_cmp_le_i32", |a, b| a <= b),
        short_unsigned("s_cmpk_eq_u32", |a, b| a == b),
        short_unsigned("s_cmpk_lg_u32", |a, b| a != b),
        short_unsigned("s_cmpk_gt_u32", |a, b| a > b),
        short_unsigned("s_cmpk_ge_u32", |a, b| a >= b),
        short_unsigned("s_cmpk_lt_u32", |a, b| a < b),
        short_unsigned("s_cmpk_le_u32", |a, b| a <= b),
        short_signed("s_cmpk_eq_i32", |a, b| a == b),
        short_signed("s_cmpk_lg_i32", |a, b| a != b),
        short_signed("s_cmpk_gt_i32", |a, b| a > b),
        short_signed("s_cmpk_ge_i32", |a, b| a >= b),
        short_signed("s_cmpk_lt_i32", |a, b| a < b),
        short_signed("s_cmpk_le_i32", |a, b| a <= b),
        Row::new("s_cmp_eq_u64", 0, &[2, 2], |i| condition(i.a == i.b)),
        Row::new("s_cmp_lg_u64", 0, &[2, 2], |i| condition(i.a != i.b)),
        Row::new("s_bitcmp0_b32", 0, &[1, 1], |i| condition(i.a >> (i.b & 31) & 1 == 0)),
        Row::new("s_bitcmp1_b32", 0, &[1, 1], |i| condition(i.a >> (i.b & 31) & 1 == 1)),
        Row::new("s_bitcmp0_b64", 0, &[2, 1], |i| condition(i.a >> (i.b & 63) & 1 == 0)),
        Row::new("s_bitcmp1_b64", 0, &[2, 1], |i| condition(i.a >> (i.b & 63) & 1 == 1)),
    ]
}
