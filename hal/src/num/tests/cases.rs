//! Cases from the field, by their numbers.

use crate::num::block::*;
use crate::num::{E2m1, E4m3Fn, E4m3Fnuz, Ue8m0};

#[test]
fn c001_negative_underflow_in_the_fnuz_dialect() {
    let inputs = [-1e-4, 1e-4, -0.0];
    assert_eq!(inputs.map(|x| E4m3Fnuz::from_f32(x).0), [0x00, 0x00, 0x00]);
    assert_eq!(inputs.map(|x| E4m3Fn::from_f32(x).0), [0x80, 0x00, 0x80]);
    assert!(E4m3Fnuz(0x80).to_f32().is_nan());
    assert_eq!(E4m3Fn(0x80).to_f32().to_bits(), (-0.0f32).to_bits());
    assert_eq!(E4m3Fnuz::from_f32(-0.000489).0, 0x81);
}

#[test]
fn c002_ocp_weights_on_fnuz_hardware() {
    let codes = [0x38, 0x7E, 0x01, 0x80, 0x7F, 0xFF].map(E4m3Fn);
    let (scale, fnuz) = requantise_fnuz(Ue8m0(127), &codes).expect("scale 1 can double");
    assert_eq!(scale, Ue8m0(128));
    assert_eq!(fnuz.map(|code| code.0), [0x38, 0x7E, 0x01, 0x00, 0x80, 0x80]);
    let values = fnuz.map(|code| code.to_f32() * scale.to_f32());
    assert_eq!(values[..4], [1.0, 448.0, 1.0 / 512.0, 0.0]);
    assert!(values[4].is_nan() && values[5].is_nan());
}

#[test]
fn c003_two_caches_two_dialects() {
    let vector = [1.0, -2.0, 0.5];
    assert_eq!(vector.map(|x| E4m3Fnuz::from_f32(x).to_f32()), vector);
    assert_eq!(vector.map(|x| E4m3Fn::from_f32(x).to_f32()), vector);
    assert_ne!(vector.map(|x| E4m3Fnuz::from_f32(x).0), vector.map(|x| E4m3Fn::from_f32(x).0));
}

#[test]
fn c004_round_up_to_a_power_of_two_near_an_exact_power() {
    let inputs = [0x3580_0000, 0x3580_0001, 0x3F80_0000, 0x3F80_0001].map(f32::from_bits);
    assert_eq!(inputs.map(|x| Ue8m0::round_up(x).0), [107, 108, 127, 128]);
}

#[test]
fn c005_quantise_with_the_scale_you_store() {
    let (scale, codes) = quantise_fp8(&[300.0; 32]);
    assert_eq!((scale, codes), (Ue8m0(127), [E4m3Fn(0x79); 32]));
    assert_eq!(codes[0].to_f32() * scale.to_f32(), 288.0);
}

#[test]
fn c006_a_scale_that_is_not_a_power_of_two() {
    assert_eq!(Ue8m0::exact(1.5), None);
    assert_eq!(Ue8m0::exact(2.0), Some(Ue8m0(128)));
}

#[test]
fn c007_ue8m0_end_points() {
    let values = [0, 1, 127, 254].map(|code| Ue8m0(code).to_f32());
    assert_eq!(values.map(f64::from), [-127, -126, 0, 127].map(|e| 2f64.powi(e)));
    assert!(Ue8m0(255).to_f32().is_nan());
    let two = E4m3Fn::from_f32(2.0).to_f32();
    assert_eq!(two * Ue8m0(0).to_f32(), f32::MIN_POSITIVE);
    assert!((E4m3Fn::from_f32(1.0).to_f32() * Ue8m0(255).to_f32()).is_nan());
}

#[test]
fn c008_all_zero_block() {
    let (zeros, ones) = ([0.0; 32], [1.0; 32]);
    let (scale, codes) = quantise_fp8(&zeros);
    assert_eq!(codes, [E4m3Fn(0); 32]);
    assert_eq!(codes[0].to_f32() * scale.to_f32(), 0.0);
    assert_eq!(quantise_fp8(&ones), (Ue8m0(119), [E4m3Fn(0x78); 32]));

    let (scale, codes) = quantise_mxfp4(&zeros);
    assert_eq!(codes, [E2m1(0); 32]);
    assert_eq!(codes[0].to_f32() * scale.to_f32(), 0.0);
    assert_eq!(quantise_mxfp4(&ones), (Ue8m0(125), [E2m1(6); 32]));

    let (scale, codes) = quantise_nvfp4(&[0.0; 16]);
    assert_eq!(codes, [E2m1(0); 16]);
    assert_eq!(codes[0].to_f32() * scale.to_f32(), 0.0);

    let (scale, codes) = quantise_fp8_f32(&[0.0; 128]);
    assert_eq!(codes, [E4m3Fn(0); 128]);
    assert_eq!(codes[0].to_f32() * scale, 0.0);

    let (scale, codes) = quantise_fp8_fnuz(&ones);
    assert_eq!((scale, codes), (Ue8m0(120), [E4m3Fnuz(0x78); 32]));
    assert_eq!(quantise_fp8_fnuz(&zeros).1, [E4m3Fnuz(0); 32]);
}

#[test]
fn c009_saturation_at_the_top_of_e4m3fn() {
    let inputs = [448.0, 464.0, 464.1, 480.0, 1e9];
    assert_eq!(inputs.map(|x| E4m3Fn::from_f32(x).0), [0x7E; 5]);
    assert_eq!(E4m3Fn::from_f32(-1e9).0, 0xFE);
    assert!(E4m3Fn::from_f32(f32::NAN).is_nan());
}

#[test]
fn c010_nibble_order_of_packed_fp4() {
    let bytes = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let values: Vec<f32> = bytes.into_iter().flat_map(E2m1::unpack).map(E2m1::to_f32).collect();
    let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0f32];
    let want: Vec<u32> =
        magnitudes.iter().copied().chain(magnitudes.map(|m| -m)).map(f32::to_bits).collect();
    assert_eq!(values.into_iter().map(f32::to_bits).collect::<Vec<_>>(), want);
}

#[test]
fn c011_fp4_ties() {
    let inputs = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 0.250_000_06, -0.25, 6.5, 1000.0];
    let codes = inputs.map(|x| E2m1::from_f32(x).0);
    assert_eq!(codes, [0, 2, 2, 4, 4, 6, 6, 1, 8, 7, 7]);
}

#[test]
fn c013_saturation_at_the_top_of_e4m3fnuz() {
    let inputs = [224.0, 240.0, 248.0, 448.0, -1e9];
    assert_eq!(inputs.map(|x| E4m3Fnuz::from_f32(x).0), [0x7E, 0x7F, 0x7F, 0x7F, 0xFF]);
    let block: [f32; 32] = std::array::from_fn(|i| 480.0 - 15.0 * i as f32);
    let (scale, codes) = quantise_fp8_fnuz(&block);
    let scale = scale.to_f32();
    for (x, code) in block.iter().zip(codes) {
        assert!(code.to_f32() <= E4m3Fnuz::BLOCK_LIMIT);
        let half_step = (x / 16.0).max(scale / 2048.0);
        assert!((code.to_f32() * scale - x).abs() <= half_step, "{x}");
    }
    assert_eq!(codes[0].to_f32() * scale, 480.0);
}
