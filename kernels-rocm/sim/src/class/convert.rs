//! Conversions between numbers.

use super::element::F16;
use super::row::{Row, one, two};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = wide();
    rows.extend(half());
    rows
}

fn wide() -> Vec<Row> {
    vec![
        one("v_cvt_f32_u32", |a: u32| a as f32),
        one("v_cvt_f32_i32", |a: i32| a as f32),
        one("v_cvt_u32_f32", |a: f32| a as u32),
        one("v_cvt_i32_f32", |a: f32| a as i32),
        one("v_cvt_rpi_i32_f32", |a: f32| (a + 0.5).floor() as i32),
        one("v_cvt_flr_i32_f32", |a: f32| a.floor() as i32),
        one("v_cvt_f32_ubyte0", |a: u32| f32::from(a as u8)),
        one("v_cvt_f32_ubyte1", |a: u32| f32::from((a >> 8) as u8)),
        one("v_cvt_f32_ubyte2", |a: u32| f32::from((a >> 16) as u8)),
        one("v_cvt_f32_ubyte3", |a: u32| f32::from((a >> 24) as u8)),
        one("v_cvt_f64_f32", |a: f32| f64::from(a)),
        one("v_cvt_f32_f64", |a: f64| a as f32),
        one("v_cvt_f64_u32", |a: u32| f64::from(a)),
        one("v_cvt_f64_i32", |a: i32| f64::from(a)),
        one("v_cvt_u32_f64", |a: f64| a as u32),
        one("v_cvt_i32_f64", |a: f64| a as i32),
    ]
}

/// Rounds to bfloat16, ties to even; a NaN stays one.
pub(crate) fn bf16_from_f32(x: f32) -> u16 {
    half::bf16::from_f32(x).to_bits()
}

/// Cut towards zero.
fn f16_towards_zero(x: f32) -> F16 {
    let near = F16::from_f32(x);
    let is_past = near.to_f32().abs() > x.abs();
    // One code down is the next value towards zero; an infinity becomes the largest number.
    if is_past { F16(near.0 - 1) } else { near }
}

fn half() -> Vec<Row> {
    vec![
        one("v_cvt_f16_f32", F16::from_f32),
        one("v_cvt_f32_f16", F16::to_f32),
        one("v_cvt_f16_u16", |a: u16| F16::from_f32(a.into())),
        one("v_cvt_f16_i16", |a: i16| F16::from_f32(a.into())),
        one("v_cvt_u16_f16", |a: F16| a.to_f32() as u16),
        one("v_cvt_i16_f16", |a: F16| a.to_f32() as i16),
        one("v_cvt_f32_bf16", |a: u32| f32::from_bits(a << 16)),
        two("v_cvt_pk_bf16_f32", |a: f32, b: f32| {
            u32::from(bf16_from_f32(a)) | u32::from(bf16_from_f32(b)) << 16
        }),
        two("v_cvt_pkrtz_f16_f32", |a: f32, b: f32| {
            u32::from(f16_towards_zero(a).0) | u32::from(f16_towards_zero(b).0) << 16
        }),
        two("v_cvt_pk_u16_u32", |a: u32, b: u32| a.min(0xffff) | b.min(0xffff) << 16),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_never_grows() {
        for x in [1.0 + 1.0 / 2048.0, 65519.0, 65520.0, 1e9, -3.0e-8, 0.1] {
            let cut = f16_towards_zero(x).to_f32();
            assert!(cut.is_finite() && cut.abs() <= x.abs(), "{x} became {cut}");
        }
        assert_eq!(f16_towards_zero(1.0).to_f32(), 1.0);
    }
}
