//! 32-bit integers: sums, products, extremes, without carries.

use super::row::{Row, one, three, two};

/// The low 24 bits with their sign.
fn low24(x: i32) -> i64 {
    i64::from(x << 8 >> 8)
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = sums();
    rows.extend(products());
    rows.extend(extremes());
    rows
}

fn sums() -> Vec<Row> {
    let quads = |a: u32, b: u32| {
        let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        pairs.map(|(x, y)| u32::from(x.abs_diff(y))).sum::<u32>()
    };
    vec![
        two("v_add_u32", |a: u32, b: u32| a.wrapping_add(b)),
        two("v_sub_u32", |a: u32, b: u32| a.wrapping_sub(b)),
        two("v_subrev_u32", |a: u32, b: u32| b.wrapping_sub(a)),
        two("v_add_i32", |a: u32, b: u32| a.wrapping_add(b)),
        two("v_sub_i32", |a: u32, b: u32| a.wrapping_sub(b)),
        three("v_add3_u32", |a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)),
        three("v_xad_u32", |a: u32, b: u32, c: u32| (a ^ b).wrapping_add(c)),
        three("v_lshl_add_u32", |a: u32, b: u32, c: u32| (a << (b & 31)).wrapping_add(c)),
        three("v_add_lshl_u32", |a: u32, b: u32, c: u32| a.wrapping_add(b) << (c & 31)),
        three("v_sad_u8", move |a: u32, b: u32, c: u32| quads(a, b).wrapping_add(c)),
        three("v_sad_u32", |a: u32, b: u32, c: u32| a.abs_diff(b).wrapping_add(c)),
        one("v_sext_i32_i16", |a: i16| i32::from(a)),
    ]
}

fn products() -> Vec<Row> {
    vec![
        two("v_mul_lo_u32", |a: u32, b: u32| a.wrapping_mul(b)),
        two("v_mul_hi_u32", |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        two("v_mul_hi_i32", |a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),
        two("v_mul_u32_u24", |a: u32, b: u32| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
        two("v_mul_hi_u32_u24", |a: u32, b: u32| {
            ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 32) as u32
        }),
        two("v_mul_i32_i24", |a: i32, b: i32| (low24(a) * low24(b)) as i32),
        two("v_mul_hi_i32_i24", |a: i32, b: i32| ((low24(a) * low24(b)) >> 32) as i32),
        three("v_mad_u32_u24", |a: u32, b: u32, c: u32| {
            (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)
        }),
        three("v_mad_i32_i24", |a: i32, b: i32, c: i32| {
            ((low24(a) * low24(b)) as i32).wrapping_add(c)
        }),
        three("v_dot4_i32_i8", |a: u32, b: u32, c: i32| {
            let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            pairs.fold(c, |sum, (x, y)| sum.wrapping_add(i32::from(x as i8) * i32::from(y as i8)))
        }),
    ]
}

fn extremes() -> Vec<Row> {
    vec![
        two("v_min_u32", |a: u32, b: u32| a.min(b)),
        two("v_max_u32", |a: u32, b: u32| a.max(b)),
        two("v_min_i32", |a: i32, b: i32| a.min(b)),
        two("v_max_i32", |a: i32, b: i32| a.max(b)),
        three("v_min3_u32", |a: u32, b: u32, c: u32| a.min(b).min(c)),
        three("v_max3_u32", |a: u32, b: u32, c: u32| a.max(b).max(c)),
        three("v_med3_u32", |a: u32, b: u32, c: u32| a.min(b).max(a.max(b).min(c))),
        three("v_min3_i32", |a: i32, b: i32, c: i32| a.min(b).min(c)),
        three("v_max3_i32", |a: i32, b: i32, c: i32| a.max(b).max(c)),
        three("v_med3_i32", |a: i32, b: i32, c: i32| a.min(b).max(a.max(b).min(c))),
    ]
}
