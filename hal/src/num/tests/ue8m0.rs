//! UE8M0: every code, and rounding up against a search.

use super::nearest::Random;
use crate::num::{ScaleOverflow, Ue8m0};

/// The first code whose power of two is not below `x`, by trying all.
fn search(x: f32) -> Ue8m0 {
    (0..=254)
        .find(|&code| 2f64.powi(code - 127) >= f64::from(x) && x >= 0.0)
        .map_or(Ue8m0::NAN, |code| Ue8m0(code as u8))
}

#[test]
fn decodes_all_codes_and_encodes_them_back() {
    for code in 0..=254u8 {
        let value = Ue8m0(code).to_f32();
        assert_eq!(f64::from(value), 2f64.powi(i32::from(code) - 127));
        assert_eq!(Ue8m0::round_up(value), Ue8m0(code));
        assert_eq!(Ue8m0::exact(value), Some(Ue8m0(code)));
        assert!(!Ue8m0(code).is_nan());
    }
    assert!(Ue8m0(255).is_nan() && Ue8m0(255).to_f32().is_nan());
    assert_eq!(Ue8m0::ONE.to_f32(), 1.0);
}

#[test]
fn rounds_up_to_the_next_power_of_two() {
    let mut bits = vec![0, 1, 0x003F_FFFF, 0x0040_0000, 0x0040_0001, 0x007F_FFFF];
    for exponent in 1..=255u32 {
        let power = exponent << 23;
        bits.extend([power - 1, power, power + 1]);
    }
    let mut random = Random(8);
    bits.extend((0..100_000).map(|_| (random.next() >> 32) as u32));
    for bits in bits.into_iter().flat_map(|bits| [bits, bits ^ 0x8000_0000]) {
        let x = f32::from_bits(bits);
        assert_eq!(Ue8m0::round_up(x), search(x), "{x:e} = {bits:#010x}");
    }
}

#[test]
fn takes_only_exact_scales_as_exact() {
    for x in [0.0, 1.5, -1.0, f32::INFINITY, f32::NAN, f32::from_bits(0x3F80_0001), f32::MAX] {
        assert_eq!(Ue8m0::exact(x), None, "{x}");
    }
}

#[test]
fn doubles_until_the_top_code() {
    for code in 0..254 {
        let doubled = Ue8m0(code).doubled().expect("below the top code");
        assert_eq!(doubled.to_f32(), Ue8m0(code).to_f32() * 2.0);
    }
    assert_eq!(Ue8m0(254).doubled(), Err(ScaleOverflow));
    assert_eq!(Ue8m0::NAN.doubled(), Ok(Ue8m0::NAN));
    let text = ScaleOverflow.to_string();
    assert!(text.contains("254") && text.contains("requantise"), "{text}");
}
