use super::*;
use crate::TensorMut;
use tandem_hal::num::bf16;
use tandem_hal::{Form, Record};

fn bf16s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect()
}
fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
fn expected(values: &[f32]) -> Expected {
    let exact: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
    Expected { bytes: bf16s(values), magnitude: vec![1.0; values.len()], exact }
}

const BOUND: Tolerance = Tolerance::Bound { gamma: 1e-6 };

#[test]
fn the_bound_allows_rounding_and_nothing_else() {
    // 1 + 3/512 lies between 1 + 1/128 and 1; a quarter of a unit from the upper.
    let want = Expected { exact: vec![1.0 + 3.0 / 512.0], ..expected(&[1.0 + 3.0 / 512.0]) };
    let upper = bf16s(&[1.0 + 1.0 / 128.0]);
    assert_eq!(judge(Enc::BF16, &[1], BOUND, &upper, &want), Ok(()));
    let truncated = bf16s(&[1.0]);
    let error = judge(Enc::BF16, &[1], BOUND, &truncated, &want).expect_err("three quarters off");
    assert_eq!(error.coordinate, [0]);
    assert!(error.why.contains("bound"), "{error}");
}

#[test]
fn a_card_without_exact_values_leaves_half_a_unit() {
    let want = Expected { exact: vec![f64::NAN], ..expected(&[1.0]) };
    let up = |units: f32| bf16s(&[1.0 + units / 128.0]);
    assert!(judge(Enc::BF16, &[1], BOUND, &up(1.0), &want).is_ok());
    assert!(judge(Enc::BF16, &[1], BOUND, &up(2.0), &want).is_err());
}

#[test]
fn magnitudes_widen_where_terms_cancel() {
    let want =
        Expected { bytes: f32s(&[0.0, 0.0]), magnitude: vec![1e6, 1.0], exact: vec![0.0, 0.0] };
    assert!(judge(Enc::F32, &[1, 2], BOUND, &f32s(&[0.5, 0.0]), &want).is_ok());
    let error = judge(Enc::F32, &[1, 2], BOUND, &f32s(&[0.5, 0.5]), &want).expect_err("too far");
    assert_eq!(error.coordinate, [0, 1]);
}

#[test]
fn masks_agree_under_every_tolerance() {
    let ulp = Tolerance::Ulp { ulps: 1 << 20, share: 1.0 };
    for tolerance in [Tolerance::Exact, Tolerance::Bound { gamma: 1e30 }, ulp] {
        for (got, want) in [
            (f32::NAN, 1.0),
            (1.0, f32::NAN),
            (f32::INFINITY, 1.0),
            (f32::INFINITY, f32::NEG_INFINITY),
            (3e38, f32::INFINITY),
        ] {
            let verdict = judge(Enc::BF16, &[1], tolerance, &bf16s(&[got]), &expected(&[want]));
            assert!(verdict.is_err(), "{got} for {want} under {tolerance:?}");
        }
        let payload = [0xC1, 0xFF];
        assert!(judge(Enc::BF16, &[1], tolerance, &payload, &expected(&[f32::NAN])).is_ok());
    }
}

#[test]
fn exact_means_bytes() {
    let want = Expected { bytes: bf16s(&[0.0, 2.0]), ..Expected::default() };
    let minus = bf16s(&[-0.0, 2.0]);
    assert!(judge(Enc::BF16, &[2], Tolerance::Exact, &minus, &want).is_err());
    let ints = Expected { bytes: vec![1, 0, 0, 0, 2, 0, 0, 0], ..Expected::default() };
    let error = judge(Enc::I32, &[2], Tolerance::Exact, &[1, 0, 0, 0, 3, 0, 0, 0], &ints);
    assert_eq!(
        error.expect_err("3 is not 2").to_string(),
        "at [1]: got 0x00000003 (3), want 0x00000002 (2): bytes must be equal"
    );
}

#[test]
fn ulps_count_over_zero_and_few_may_exceed_one() {
    let want = expected(&[1.0; 100]);
    let some = |n: usize, up: f32| {
        let mut values = [1.0; 100];
        values[..n].fill(1.0 + up / 128.0);
        bf16s(&values)
    };
    let rule = Tolerance::Ulp { ulps: 2, share: 0.02 };
    assert!(judge(Enc::BF16, &[100], rule, &some(100, 1.0), &want).is_ok());
    assert!(judge(Enc::BF16, &[100], rule, &some(2, 2.0), &want).is_ok());
    assert!(judge(Enc::BF16, &[100], rule, &some(3, 2.0), &want).is_err());
    assert!(judge(Enc::BF16, &[100], rule, &some(1, 3.0), &want).is_err());
    let (tiny, zero) = (f32::from_bits(1 << 16), 0.0);
    assert!(judge(Enc::BF16, &[1], rule, &bf16s(&[-tiny]), &expected(&[tiny])).is_ok());
    assert!(judge(Enc::BF16, &[1], rule, &bf16s(&[-0.0]), &expected(&[zero])).is_ok());
}

#[test]
fn quantised_values_may_move_one_step() {
    let enc = Enc::Record(Record::new(Form::Mxfp8, 64));
    let encode = |values: &[f32]| {
        let mut bytes = vec![0u8; 66];
        TensorMut::dense(enc, &[1, 1], &mut bytes, &mut [], None).set_entry(0, values);
        bytes
    };
    let values: Vec<f32> = (0..64).map(|i| 1.0 + i as f32 / 64.0).collect();
    let want = Expected { bytes: encode(&values), ..Expected::default() };
    let moved = |code: usize, by: u8| {
        let mut bytes = want.bytes.clone();
        bytes[code] += by;
        bytes
    };
    assert!(judge(enc, &[1, 1], BOUND, &moved(5, 1), &want).is_ok());
    assert!(judge(enc, &[1, 1], BOUND, &moved(5, 2), &want).is_err());
    assert!(judge(enc, &[1, 1], Tolerance::Exact, &moved(5, 1), &want).is_err());
    let off: Vec<f32> = values.iter().map(|v| v * 1.07).collect();
    assert!(judge(enc, &[1, 1], BOUND, &encode(&off), &want).is_err(), "too many");
}

#[test]
fn bias_shows_truncation_and_forgives_coins() {
    let want: Vec<f32> = (0..400).map(|i| 1.0 + (i % 100) as f32 / 128.0).collect();
    let less: Vec<f32> = want.iter().map(|v| v - 1.0 / 128.0).collect();
    let mut bias = Bias::default();
    bias.add(Enc::BF16, &bf16s(&less), &bf16s(&want));
    assert_eq!(bias.smaller, 400);
    assert!(bias.verdict().expect_err("all lean").contains("towards"));
    let coins: Vec<f32> = want
        .iter()
        .enumerate()
        .map(|(i, v)| if i % 2 == 0 { v + 0.01 } else { v - 0.01 })
        .collect();
    let mut fair = Bias::default();
    fair.add(Enc::BF16, &bf16s(&coins), &bf16s(&want));
    assert!(fair.smaller > 0 && fair.verdict().is_ok());
}
