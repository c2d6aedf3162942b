//! The signed small formats: every code, and encoders against the oracle.

use super::nearest::{e2m1, e4m3fn, e4m3fnuz, inputs, midpoints, nearest};
use crate::num::{E2m1, E4m3Fn, E4m3Fnuz};

const RANDOM: usize = 400_000;

/// Value of a code by the oracle's list; NaN beyond the list.
fn listed(values: &[f64], magnitude: u8, negative: bool) -> f32 {
    let value = values.get(usize::from(magnitude)).map_or(f32::NAN, |&value| value as f32);
    if negative { -value } else { value }
}

fn assert_same(got: f32, want: f32, code: u8) {
    let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
    assert!(same, "code {code:#04x}: {got} against {want}");
}

#[test]
fn e4m3fn_decodes_all_codes_and_encodes_them_back() {
    let values = e4m3fn();
    for code in 0..=255u8 {
        let value = E4m3Fn(code).to_f32();
        assert_same(value, listed(&values, code & 0x7F, code >= 0x80), code);
        assert_eq!(value.is_nan(), E4m3Fn(code).is_nan());
        let back = if value.is_nan() { E4m3Fn::NAN } else { E4m3Fn(code) };
        assert_eq!(E4m3Fn::from_f32(value), back);
    }
    assert_eq!((0..=255).filter(|&code| E4m3Fn(code).is_nan()).collect::<Vec<_>>(), [0x7F, 0xFF]);
    assert_eq!(E4m3Fn(0x7E).to_f32(), E4m3Fn::MAX);
}

#[test]
fn e4m3fnuz_decodes_all_codes_and_encodes_them_back() {
    let values = e4m3fnuz();
    for code in 0..=255u8 {
        let value = E4m3Fnuz(code).to_f32();
        let want = if code == 0x80 { f32::NAN } else { listed(&values, code & 0x7F, code > 0x80) };
        assert_same(value, want, code);
        assert_eq!(value.is_nan(), E4m3Fnuz(code).is_nan());
        assert_eq!(E4m3Fnuz::from_f32(value), E4m3Fnuz(code));
    }
    assert_eq!((0..=255).filter(|&code| E4m3Fnuz(code).is_nan()).collect::<Vec<_>>(), [0x80]);
    assert_eq!(E4m3Fnuz(0x7F).to_f32(), E4m3Fnuz::MAX);
}

#[test]
fn e2m1_decodes_all_codes_and_encodes_them_back() {
    for code in 0..16 {
        let value = E2m1(code).to_f32();
        assert_same(value, listed(&e2m1(), code & 7, code >= 8), code);
        assert_eq!(E2m1::from_f32(value), E2m1(code));
        assert_eq!(E2m1(code | 0xF0).to_f32().to_bits(), value.to_bits(), "upper bits matter");
    }
    assert_eq!(E2m1(7).to_f32(), E2m1::MAX);
}

#[test]
fn encoders_agree_with_the_nearest_value() {
    let lists = [e4m3fn(), e4m3fnuz(), e2m1()];
    for (format, values) in lists.iter().enumerate() {
        let midpoints = midpoints(values);
        for x in inputs(values, RANDOM) {
            let magnitude = nearest(f64::from(x).abs(), &midpoints) as u8;
            let negative = x.is_sign_negative();
            let (got, want) = match (format, x.is_nan()) {
                (0, true) => (E4m3Fn::from_f32(x).0, 0x7F),
                (0, false) => (E4m3Fn::from_f32(x).0, magnitude | u8::from(negative) << 7),
                (1, true) => (E4m3Fnuz::from_f32(x).0, 0x80),
                (1, false) => {
                    let sign = u8::from(negative && magnitude != 0) << 7;
                    (E4m3Fnuz::from_f32(x).0, magnitude | sign)
                }
                (_, true) => (E2m1::from_f32(x).0, 7),
                (_, false) => (E2m1::from_f32(x).0, magnitude | u8::from(negative) << 3),
            };
            assert_eq!(got, want, "format {format}, {x:e} = {:#010x}", x.to_bits());
        }
    }
}

#[test]
fn rounding_has_no_bias() {
    // Midpoints of a binade go down and up in turn and every other error has a mirror image, so
    // over an even run the errors cancel exactly; ties that lean one way leave a remainder.
    let fn_dialect: fn(f32) -> f32 = |x| E4m3Fn::from_f32(x).to_f32();
    let encoders = [
        (2f32.powi(-6), 256.0, fn_dialect),
        (2f32.powi(-7), 128.0, |x| E4m3Fnuz::from_f32(x).to_f32()),
        (1.0, 4.0, |x| E2m1::from_f32(x).to_f32()),
    ];
    for (smallest_normal, top, round) in encoders {
        let (mut low, mut high) = (0.0, smallest_normal);
        while high <= top {
            let error = |i: i16| {
                let x = low + (high - low) * (f32::from(i) / 256.0);
                [x, -x].map(|x| f64::from(round(x)) - f64::from(x))
            };
            let sums = (0..=256).map(error).fold([0.0; 2], |sum, e| [sum[0] + e[0], sum[1] + e[1]]);
            assert_eq!(sums, [0.0; 2], "from {low} to {high}");
            (low, high) = (high, high * 2.0);
        }
    }
}

#[test]
fn infinities_saturate_and_every_nan_stays_one() {
    let infinity = f32::INFINITY;
    assert_eq!([infinity, -infinity].map(|x| E4m3Fn::from_f32(x).0), [0x7E, 0xFE]);
    assert_eq!([infinity, -infinity].map(|x| E4m3Fnuz::from_f32(x).0), [0x7F, 0xFF]);
    assert_eq!([infinity, -infinity].map(|x| E2m1::from_f32(x).0), [0x7, 0xF]);
    for bits in [0x7FC0_0000, 0xFFC0_0000, 0x7F80_0001, 0xFF80_0001, 0x7FFF_FFFF, 0xFFFF_FFFF] {
        let nan = f32::from_bits(bits);
        assert_eq!(E4m3Fn::from_f32(nan), E4m3Fn::NAN);
        assert_eq!(E4m3Fnuz::from_f32(nan), E4m3Fnuz::NAN);
        assert_eq!(E2m1::from_f32(nan), E2m1(7));
    }
}

#[test]
fn the_fnuz_code_is_half_of_the_fn_code() {
    for code in (0..=255).map(E4m3Fn) {
        let half = E4m3Fnuz::half_of(code);
        assert_eq!(half.is_nan(), code.is_nan());
        if !code.is_nan() {
            assert_eq!(half.to_f32() * 2.0, code.to_f32());
            assert_eq!(half, E4m3Fnuz::from_f32(code.to_f32() / 2.0));
            assert_eq!(half.0, if code.0 == 0x80 { 0 } else { code.0 });
        }
    }
}

#[test]
fn e2m1_widens_exactly() {
    for code in (0..16).map(E2m1) {
        let value = code.to_f32();
        assert_eq!(E4m3Fn::from(code).to_f32().to_bits(), value.to_bits());
        assert_eq!(E4m3Fnuz::from(code).to_f32(), value);
        assert_eq!(E4m3Fnuz::from(code), E4m3Fnuz::from_f32(value));
    }
}

#[test]
fn e2m1_packs_and_unpacks_every_byte() {
    for byte in 0..=255 {
        let [even, odd] = E2m1::unpack(byte);
        assert_eq!([even.0, odd.0], [byte & 0xF, byte >> 4]);
        assert_eq!(E2m1::pack(even, odd), byte);
    }
}
