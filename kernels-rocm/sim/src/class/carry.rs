//! Sums with a carry from and to each lane's bit of a mask.

use super::row::{Row, three, two};

pub(crate) fn rows() -> Vec<Row> {
    fn sum(a: u32, b: u32, carry: bool) -> (u32, bool) {
        let wide = u64::from(a) + u64::from(b) + u64::from(carry);
        (wide as u32, wide >> 32 != 0)
    }
    fn difference(a: u32, b: u32, borrow: bool) -> (u32, bool) {
        let wide = i64::from(a) - i64::from(b) - i64::from(borrow);
        (wide as u32, wide < 0)
    }
    vec![
        two("v_add_co_u32", |a: u32, b: u32| sum(a, b, false)),
        two("v_sub_co_u32", |a: u32, b: u32| difference(a, b, false)),
        two("v_subrev_co_u32", |a: u32, b: u32| difference(b, a, false)),
        three("v_addc_co_u32", sum),
        three("v_subb_co_u32", difference),
        three("v_subbrev_co_u32", |a: u32, b: u32, borrow: bool| difference(b, a, borrow)),
    ]
}
