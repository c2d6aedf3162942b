//! Conversions from and to numbers of 8 and 4 bits, in the dialect of the target.

use super::convert::bf16_from_f32;
use super::element::F16;
use super::row::{Row, four, one, three};
use crate::Target;
use crate::number::{Minifloat, e8m0};

pub(crate) fn rows(target: Target) -> Vec<Row> {
    let (fp8, bf8) = (Minifloat::fp8(target.is_fnuz()), Minifloat::bf8(target.is_fnuz()));
    let mut rows = vec![
        single("v_cvt_f32_fp8", fp8),
        single("v_cvt_f32_bf8", bf8),
        pair("v_cvt_pk_f32_fp8", fp8),
        pair("v_cvt_pk_f32_bf8", bf8),
        packed("v_cvt_pk_fp8_f32", fp8),
        packed("v_cvt_pk_bf8_f32", bf8),
    ];
    if target == Target::Gfx950 {
        let fp4 = Minifloat::E2M1;
        rows.extend([
            scaled("v_cvt_scalef32_pk_f32_fp4", fp4, both_f32),
            scaled("v_cvt_scalef32_pk_f32_fp8", fp8, both_f32),
            scaled("v_cvt_scalef32_pk_f32_bf8", bf8, both_f32),
            scaled("v_cvt_scalef32_pk_bf16_fp4", fp4, both_bf16),
            scaled("v_cvt_scalef32_pk_bf16_fp8", fp8, both_bf16),
            scaled("v_cvt_scalef32_pk_bf16_bf8", bf8, both_bf16),
            scaled("v_cvt_scalef32_pk_f16_fp4", fp4, both_f16),
            scaled("v_cvt_scalef32_pk_f16_fp8", fp8, both_f16),
            scaled("v_cvt_scalef32_pk_f16_bf8", bf8, both_f16),
        ]);
    }
    rows
}

fn single(name: &'static str, format: Minifloat) -> Row {
    one(name, move |a: u32| format.decode(a & 0xff) as f32)
}

fn pair(name: &'static str, format: Minifloat) -> Row {
    one(name, move |a: u32| {
        both_f32(format.decode(a & 0xff) as f32, format.decode(a >> 8 & 0xff) as f32)
    })
}

/// Two codes into a half of the result register.
fn packed(name: &'static str, format: Minifloat) -> Row {
    four(name, move |a: f32, b: f32, old: u32, select: u32| {
        let codes = format.encode(a.into(), false) | format.encode(b.into(), false) << 8;
        // The third bit is the result's.
        if select & 4 != 0 { old & 0xffff | codes << 16 } else { old & 0xffff_0000 | codes }
    })
    .into_half()
}

/// Two values times a power of two; of the scale only the exponent counts.
fn scaled<D: super::element::Output>(
    name: &'static str,
    format: Minifloat,
    both: fn(f32, f32) -> D,
) -> Row {
    three(name, move |codes: u32, scale: u32, select: u32| {
        let bits = format.bits();
        let codes =
            if bits == 4 { codes >> (8 * (select & 3)) } else { codes >> (16 * (select & 1)) };
        let scale = e8m0((scale >> 23) as u8);
        let value = |code: u32| (format.decode(code & ((1 << bits) - 1)) * scale) as f32;
        both(value(codes), value(codes >> bits))
    })
    .selects()
}

fn both_f32(low: f32, high: f32) -> u64 {
    u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32
}

fn both_bf16(low: f32, high: f32) -> u32 {
    u32::from(bf16_from_f32(low)) | u32::from(bf16_from_f32(high)) << 16
}

fn both_f16(low: f32, high: f32) -> u32 {
    u32::from(F16::from_f32(low).0) | u32::from(F16::from_f32(high).0) << 16
}
