//! Codes that no weight may hold: one NaN would spread to every token that meets it.

use half::bf16;

/// What the bytes of a tensor encode, as far as bad values are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codes {
    /// bf16, little-endian.
    Bf16,
    /// f32, little-endian.
    F32,
    /// e4m3fn.
    E4m3,
    /// e2m1 pairs: every code is a number.
    E2m1,
    /// Exponent bytes of e4m3fn codes.
    E4m3Scale,
    /// Exponent bytes of e2m1 codes.
    E2m1Scale,
}

/// Exponent byte of NaN.
const NAN_SCALE: u8 = 255;
/// Largest scale at which the largest code, 448, is still a finite f32.
const LARGEST_E4M3_SCALE: u8 = 246;
/// The same for the largest code 6.
const LARGEST_E2M1_SCALE: u8 = 252;

impl Codes {
    /// Bytes of one element; a pair counts as one.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
            _ => 1,
        }
    }

    /// The first bad element: what it is, and its first byte.
    pub fn first_bad(self, bytes: &[u8]) -> Option<(&'static str, usize)> {
        let size = self.bytes();
        let index = match self {
            Self::Bf16 => bytes.chunks_exact(2).position(|b| {
                let bits = u16::from_le_bytes([b[0], b[1]]);
                bits & 0x7f80 == 0x7f80
            }),
            Self::F32 => {
                bytes.chunks_exact(4).position(|b| b[3] & 0x7f == 0x7f && b[2] & 0x80 == 0x80)
            }
            Self::E4m3 => bytes.iter().position(|b| b & 0x7f == 0x7f),
            Self::E2m1 => None,
            Self::E4m3Scale => bytes.iter().position(|b| *b > LARGEST_E4M3_SCALE),
            Self::E2m1Scale => bytes.iter().position(|b| *b > LARGEST_E2M1_SCALE),
        }?;
        let at = index * size;
        Some((self.fault(&bytes[at..at + size]), at))
    }

    fn fault(self, element: &[u8]) -> &'static str {
        let nan = match self {
            Self::Bf16 => bf16::from_le_bytes([element[0], element[1]]).is_nan(),
            Self::F32 => element[2] & 0x7f != 0 || element[0] != 0 || element[1] != 0,
            Self::E4m3 | Self::E2m1 => true,
            Self::E4m3Scale | Self::E2m1Scale => element[0] == NAN_SCALE,
        };
        match (self, nan) {
            (Self::E4m3Scale | Self::E2m1Scale, true) => "NaN scale",
            (Self::E4m3Scale | Self::E2m1Scale, false) => "overflowing scale",
            (_, true) => "NaN",
            (_, false) => "infinity",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_element_is_found_and_named() {
        let bf16 = |x: f32| half::bf16::from_f32(x).to_le_bytes();
        let row: Vec<u8> = [1.0, f32::NAN, f32::INFINITY].into_iter().flat_map(bf16).collect();
        assert_eq!(Codes::Bf16.first_bad(&row), Some(("NaN", 2)));
        assert_eq!(Codes::Bf16.first_bad(&row[4..]), Some(("infinity", 0)));
        assert_eq!(Codes::Bf16.first_bad(&row[..2]), None);
        for (value, fault) in [
            (f32::NAN, Some("NaN")),
            (f32::from_bits(0x7f80_0001), Some("NaN")),
            (f32::NEG_INFINITY, Some("infinity")),
            (f32::MAX, None),
            (1e-45, None),
        ] {
            let bytes = [0.5_f32.to_le_bytes(), value.to_le_bytes()].concat();
            assert_eq!(Codes::F32.first_bad(&bytes), fault.map(|fault| (fault, 4)), "{value}");
        }
        for code in 0..=255_u8 {
            let e4m3 = tandem_hal::num::E4m3Fn(code).to_f32();
            let bad = Codes::E4m3.first_bad(&[code]).is_some();
            assert_eq!(bad, e4m3.is_nan(), "{code}");
            let finite = |largest: f64| {
                code < 255 && largest * 2_f64.powi(i32::from(code) - 127) <= f64::from(f32::MAX)
            };
            assert_eq!(Codes::E4m3Scale.first_bad(&[code]).is_none(), finite(448.0), "{code}");
            assert_eq!(Codes::E2m1Scale.first_bad(&[code]).is_none(), finite(6.0), "{code}");
        }
        assert_eq!(Codes::E2m1Scale.first_bad(&[0, 255]), Some(("NaN scale", 1)));
        assert_eq!(Codes::E4m3Scale.first_bad(&[254]), Some(("overflowing scale", 0)));
    }
}
