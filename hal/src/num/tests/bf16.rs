//! bf16: every value, and both encoders against the oracle.

use super::nearest::{Random, bf16, inputs, midpoints, nearest};
use crate::num::bf16::{from_f32, from_f64, round_f32, round_f64, to_f32};

/// Sign and nearest magnitude of a number that is not NaN.
fn oracle(x: f64, midpoints: &[f64]) -> u16 {
    nearest(x.abs(), midpoints) as u16 | u16::from(x.is_sign_negative()) << 15
}

#[test]
fn decodes_all_values_and_encodes_them_back() {
    let values = bf16();
    for bits in 0..=u16::MAX {
        let value = to_f32(bits);
        let magnitude = bits & 0x7FFF;
        match magnitude {
            0..0x7F80 => assert_eq!(f64::from(value.abs()), values[usize::from(magnitude)]),
            0x7F80 => assert!(value.is_infinite()),
            _ => assert!(value.is_nan()),
        }
        assert_eq!(value.is_sign_negative(), bits >= 0x8000);
        let quiet = if magnitude > 0x7F80 { bits | 0x40 } else { bits };
        assert_eq!(from_f32(value), quiet);
        assert_eq!(from_f64(f64::from(value)), quiet);
    }
}

#[test]
fn rounds_f32_to_the_nearest() {
    let values = bf16();
    let midpoints = midpoints(&values);
    for x in inputs(&values, 400_000).into_iter().filter(|x| !x.is_nan()) {
        let want = oracle(f64::from(x), &midpoints);
        assert_eq!(from_f32(x), want, "{x:e} = {:#010x}", x.to_bits());
        assert_eq!(from_f64(f64::from(x)), want);
        assert_eq!(round_f32(x).to_bits(), u32::from(want) << 16);
    }
}

#[test]
fn rounds_f64_once() {
    let values = bf16();
    let midpoints = midpoints(&values);
    let mut inputs = vec![f64::MAX, f64::INFINITY, f64::MIN_POSITIVE, f64::from_bits(1), 0.0];
    for &x in values.iter().chain(&midpoints) {
        // Beside a midpoint by one unit of the f64, by one that f32 drops, and by one it keeps.
        for step in [0, 1, 1 << 20, 1 << 28, 1 << 29] {
            inputs
                .extend([x.to_bits() + step, x.to_bits().saturating_sub(step)].map(f64::from_bits));
        }
    }
    let mut random = Random(0xBF16);
    for _ in 0..200_000 {
        let draw = random.next();
        let near = (draw & 0x000F_FFFF_FFFF_FFFF) | ((880 + (draw >> 52) % 280) << 52);
        inputs.extend([draw, near].map(f64::from_bits).into_iter().filter(|x| !x.is_nan()));
    }
    for x in inputs.into_iter().flat_map(|x| [x, -x]) {
        let want = oracle(x, &midpoints);
        assert_eq!(from_f64(x), want, "{x:e} = {:#018x}", x.to_bits());
        assert_eq!(round_f64(x).to_bits(), u32::from(want) << 16);
    }
}

#[test]
fn f64_beside_a_tie_is_not_a_tie() {
    // 1 + 2^-8 is the midpoint above 1; an f32 cannot hold what lies 2^-40 beside it.
    let midpoint = 1.0 + 2f64.powi(-8);
    let beside = 2f64.powi(-40);
    assert_eq!(
        [midpoint - beside, midpoint, midpoint + beside].map(from_f64),
        [0x3F80, 0x3F80, 0x3F81]
    );
    assert_eq!(from_f32((midpoint + beside) as f32), 0x3F80, "twice rounded, for contrast");
}

#[test]
fn nan_is_quiet_and_keeps_its_sign() {
    assert_eq!(from_f32(f32::from_bits(0x7F80_0001)), 0x7FC0);
    assert_eq!(from_f32(f32::from_bits(0xFF80_0001)), 0xFFC0);
    assert_eq!(from_f32(f32::from_bits(0x7FFF_FFFF)), 0x7FFF);
    assert_eq!(from_f64(f64::from_bits(0xFFF0_0000_0000_0001)), 0xFFC0);
}
