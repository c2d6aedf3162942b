//! Scale rules: check values, every bf16 amax against the plain definition, NaN and infinity.

use super::nearest::{Random, e2m1, e4m3fn, midpoints, nearest};
use crate::num::block::*;
use crate::num::{E2m1, E4m3Fn, E4m3Fnuz, ScaleOverflow, Ue8m0, bf16};

/// Values with alternating signs that grow by 0.1, as bf16.
fn ramp() -> [f32; 32] {
    std::array::from_fn(|i| {
        let magnitude = 0.1 * (i + 1) as f64;
        bf16::round_f64(if i % 2 == 0 { magnitude } else { -magnitude })
    })
}

/// Every non-negative finite bf16.
fn bf16_magnitudes() -> impl Iterator<Item = f32> {
    (0..0x7F80).map(bf16::to_f32)
}

/// Blocks of bf16 values with many magnitudes, signs and zeros.
fn random_blocks<const N: usize>(count: usize) -> Vec<[f32; N]> {
    let mut random = Random(N as u64);
    (0..count)
        .map(|_| {
            let spread = 1 + random.next() % 40;
            let low = 110 - random.next() % 30;
            std::array::from_fn(|_| {
                let draw = random.next();
                let exponent = low + (draw >> 32) % spread;
                let bits = (draw as u16 & 0x807F) | (exponent as u16) << 7;
                bf16::to_f32(if draw.is_multiple_of(16) { bits & 0x8000 } else { bits })
            })
        })
        .collect()
}

#[test]
fn b1_fp8_check_values() {
    let (scale, codes) = quantise_fp8(&ramp());
    assert_eq!(scale, Ue8m0(120));
    assert_eq!(codes.map(|code| code.0)[..8], [0x55, 0xDD, 0x62, 0xE5, 0x68, 0xEA, 0x6B, 0xED]);
    assert_eq!(codes[31].0, 0xFD);
    assert_eq!(
        codes.map(|code| code.to_f32() * scale.to_f32())[..8],
        [0.1015625, -0.203125, 0.3125, -0.40625, 0.5, -0.625, 0.6875, -0.8125]
    );
}

#[test]
fn b2_mxfp4_check_values() {
    let (scale, codes) = quantise_mxfp4(&ramp());
    assert_eq!(scale, Ue8m0(127));
    assert_eq!(
        codes.map(|code| code.0),
        [
            0, 8, 1, 9, 1, 9, 1, 10, 2, 10, 2, 10, 3, 11, 3, 11, 3, 12, 4, 12, 4, 12, 4, 12, 4, 13,
            5, 13, 5, 13, 5, 13
        ]
    );
    let packed: Vec<u8> = codes.chunks(2).map(|pair| E2m1::pack(pair[0], pair[1])).collect();
    assert_eq!(packed[..8], [0x80, 0x91, 0x91, 0xA1, 0xA2, 0xA2, 0xB3, 0xB3]);
}

#[test]
fn b3_nvfp4_check_values() {
    let values = *ramp().first_chunk().expect("32 values hold 16");
    let (scale, codes) = quantise_nvfp4(&values);
    assert_eq!((scale, scale.to_f32()), (E4m3Fn(0x29), 0.28125));
    assert_eq!(codes.map(|code| code.0), [1, 9, 2, 11, 4, 12, 4, 13, 5, 14, 6, 14, 6, 14, 7, 15]);
    let packed: Vec<u8> = codes.chunks(2).map(|pair| E2m1::pack(pair[0], pair[1])).collect();
    assert_eq!(packed, [0x91, 0xB2, 0xC4, 0xD4, 0xE5, 0xE6, 0xE6, 0xF7]);
}

#[test]
fn power_of_two_scales_are_the_smallest_that_fit_every_bf16() {
    let smallest = |amax: f64, limit: f64| {
        let code = (0..=254).find(|&code| limit * 2f64.powi(code - 127) >= amax);
        Ue8m0(code.expect("a bf16 fits under the top scale") as u8)
    };
    for amax in bf16_magnitudes() {
        let wide = f64::from(amax);
        let fp8 = smallest(wide.max(f64::from(1e-4f32)), 448.0);
        assert_eq!(fp8_scale(amax), fp8, "{amax:e}");
        assert_eq!(fp8_fnuz_scale(amax), Ue8m0(fp8.0 + 1), "{amax:e}");
        assert_eq!(mxfp4_scale(amax), smallest(wide.max(6.0 * 2f64.powi(-126)), 6.0), "{amax:e}");
    }
    assert_eq!([fp8_scale(0.0).0, fp8_fnuz_scale(0.0).0, mxfp4_scale(0.0).0], [105, 106, 1]);
}

#[test]
fn nvfp4_scale_is_the_nearest_to_a_sixth_of_every_bf16() {
    let midpoints = midpoints(&e4m3fn());
    for amax in bf16_magnitudes() {
        let sixth = f64::from(amax).max(6.0 / 512.0) / 6.0;
        assert_eq!(usize::from(nvfp4_scale(amax).0), nearest(sixth, &midpoints), "{amax:e}");
    }
    assert_eq!([0.0, 2688.0, 3e38].map(|amax| nvfp4_scale(amax).0), [0x01, 0x7E, 0x7E]);
}

#[test]
fn nvfp4_codes_are_the_nearest_under_every_scale() {
    // Midpoints times the scale are exact, so no quotient enters the oracle.
    let midpoints = midpoints(&e2m1());
    for scale in (1..0x7F).map(|code| E4m3Fn(code).to_f32()) {
        let scaled: Vec<f64> = midpoints.iter().map(|m| m * f64::from(scale)).collect();
        for x in bf16_magnitudes() {
            let code = E2m1::from_f32(x / scale).0;
            assert_eq!(usize::from(code), nearest(f64::from(x), &scaled), "{x:e} under {scale:e}");
        }
    }
    // An exact tie, which a product with the rounded reciprocal misses.
    let (x, scale) = (0.036_621_094_f32, 0.029_296_875_f32);
    assert_eq!((f64::from(x), E2m1::from_f32(x / scale)), (0.03662109375, E2m1(2)));
}

#[test]
fn elements_stay_within_half_a_step() {
    for block in random_blocks::<32>(2000) {
        let (scale, codes) = quantise_fp8(&block);
        let scale = scale.to_f32();
        for (x, code) in block.iter().zip(codes) {
            let bound = (x.abs() / 16.0).max(scale / 1024.0);
            assert!((code.to_f32() * scale - x).abs() <= bound, "{x} under {scale}");
            let value = code.to_f32() * scale;
            assert_eq!(value, bf16::round_f32(value), "not a bf16");
        }
        let (scale, codes) = quantise_mxfp4(&block);
        for (x, code) in block.iter().zip(codes) {
            let bound = (x.abs() / 4.0).max(scale.to_f32() / 4.0);
            assert!((code.to_f32() * scale.to_f32() - x).abs() <= bound, "{x}");
        }
    }
    for block in random_blocks::<128>(500) {
        let (scale, codes) = quantise_fp8_f32(&block);
        assert_eq!(scale, amax(&block).max(1e-4) / 448.0);
        for (x, code) in block.iter().zip(codes) {
            // The division and the product round too.
            let bound = (x.abs() / 16.0).max(scale / 1024.0) * (1.0 + 1e-5);
            assert!((code.to_f32() * scale - x).abs() <= bound, "{x} under {scale}");
        }
    }
}

#[test]
fn both_dialects_dequantise_alike() {
    for block in random_blocks::<32>(2000) {
        let (scale, codes) = quantise_fp8(&block);
        let (fnuz_scale, fnuz_codes) = quantise_fp8_fnuz(&block);
        assert_eq!(requantise_fnuz(scale, &codes), Ok((fnuz_scale, fnuz_codes)));
        for (a, b) in codes.iter().zip(fnuz_codes) {
            assert_eq!(a.to_f32() * scale.to_f32(), b.to_f32() * fnuz_scale.to_f32());
        }
    }
    assert_eq!(requantise_fnuz(Ue8m0(254), &[E4m3Fn(0x38)]), Err(ScaleOverflow));
}

#[test]
fn nan_or_infinity_makes_the_whole_block_nan() {
    for bad in [f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::INFINITY, f32::NEG_INFINITY]
    {
        for place in [0, 7, 15] {
            let mut block = ramp();
            block[place] = bad;
            let (scale, codes) = quantise_fp8(&block);
            assert_eq!((scale, codes), (Ue8m0(0xFF), [E4m3Fn(0x7F); 32]));
            let (scale, codes) = quantise_fp8_fnuz(&block);
            assert_eq!((scale, codes), (Ue8m0(0xFF), [E4m3Fnuz(0x80); 32]));
            let (scale, codes) = quantise_mxfp4(&block);
            assert_eq!((scale, codes), (Ue8m0(0xFF), [E2m1(7); 32]));
            let (scale, codes) = quantise_nvfp4(block.first_chunk().expect("32 values hold 16"));
            assert_eq!((scale, codes), (E4m3Fn(0x7F), [E2m1(7); 16]));
            let mut wide = [1.0; 128];
            wide[place * 8] = bad;
            let (scale, codes) = quantise_fp8_f32(&wide);
            assert!(scale.is_nan() && codes == [E4m3Fn::NAN; 128]);
        }
    }
}

#[test]
fn amax_orders_nan_above_infinity_above_all() {
    assert_eq!(amax(&[]), 0.0);
    assert_eq!(amax(&[-0.0, 0.0]).to_bits(), 0);
    assert_eq!(amax(&[1.0, -3.0, 2.0]), 3.0);
    assert_eq!(amax(&[1.0, f32::NEG_INFINITY]), f32::INFINITY);
    assert!(amax(&[f32::INFINITY, -f32::NAN, 1.0]).is_nan());
}

#[test]
fn zeros_keep_their_sign_where_the_format_has_one() {
    let mut block = [0.0; 32];
    block[1] = -0.0;
    block[2] = 1.0;
    assert_eq!(quantise_fp8(&block).1.map(|code| code.0)[..2], [0x00, 0x80]);
    assert_eq!(quantise_fp8_fnuz(&block).1.map(|code| code.0)[..2], [0x00, 0x00]);
    assert_eq!(quantise_mxfp4(&block).1.map(|code| code.0)[..2], [0x0, 0x8]);
    let narrow = block.first_chunk().expect("32 values hold 16");
    assert_eq!(quantise_nvfp4(narrow).1.map(|code| code.0)[..2], [0x0, 0x8]);
}

#[test]
fn rounding_up_at_the_top_of_f32_is_infinite_not_wrong() {
    let (scale, codes) = quantise_fp8(&[bf16::to_f32(0x7F7F); 32]);
    assert_eq!((scale, codes[0]), (Ue8m0(247), E4m3Fn(0x78)));
    assert_eq!(codes[0].to_f32() * scale.to_f32(), f32::INFINITY);
}
