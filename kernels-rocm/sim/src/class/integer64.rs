//! 64-bit integers.

use super::row::{Row, three};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        three("v_lshl_add_u64", |a: u64, by: u32, c: u64| (a << (by & 7)).wrapping_add(c)),
        three("v_mad_u64_u32", |a: u32, b: u32, c: u64| {
            (u64::from(a) * u64::from(b)).overflowing_add(c)
        }),
        three("v_mad_i64_i32", |a: i32, b: i32, c: i64| {
            (i64::from(a) * i64::from(b)).overflowing_add(c)
        }),
    ]
}
