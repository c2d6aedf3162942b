//! Plain floating-point outputs, element by element.

use tandem_hal::num::bf16;
use tandem_hal::{Elem, Enc};

/// A float format that outputs are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Float {
    F32,
    Bf16,
}

impl Float {
    pub(super) fn of(enc: Enc) -> Option<Float> {
        match enc {
            Enc::Plain(Elem::F32) => Some(Float::F32),
            Enc::Plain(Elem::Bf16) => Some(Float::Bf16),
            _ => None,
        }
    }
    pub(super) fn enc(self) -> Enc {
        match self {
            Float::F32 => Enc::F32,
            Float::Bf16 => Enc::BF16,
        }
    }
    pub(super) fn bytes(self) -> usize {
        self.enc().unit_bits() as usize / 8
    }

    /// The bits of element `i`.
    pub(super) fn bits(self, all: &[u8], i: usize) -> u32 {
        let at = &all[i * self.bytes()..][..self.bytes()];
        match self {
            Float::F32 => u32::from_le_bytes([at[0], at[1], at[2], at[3]]),
            Float::Bf16 => u32::from(u16::from_le_bytes([at[0], at[1]])),
        }
    }
    /// The value of element `i`.
    pub(super) fn value(self, all: &[u8], i: usize) -> f64 {
        let bits = self.bits(all, i);
        f64::from(match self {
            Float::F32 => f32::from_bits(bits),
            Float::Bf16 => bf16::to_f32(bits as u16),
        })
    }
    /// Distance of neighbours of the format around `x`.
    pub(super) fn ulp(self, x: f64) -> f64 {
        let mantissa = match self {
            Float::F32 => 23,
            Float::Bf16 => 7,
        };
        // The exponent field of an f64; both formats share the smallest normal exponent.
        let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-126);
        2f64.powi(exponent - mantissa)
    }
    /// Representable numbers between two elements; zeros of both signs are one.
    pub(super) fn distance(self, a: &[u8], b: &[u8], i: usize) -> u64 {
        let order = |bits: u32| -> i64 {
            let top = self.bytes() * 8 - 1;
            let magnitude = i64::from(bits & !(1 << top));
            if bits >> top == 1 { -magnitude } else { magnitude }
        };
        order(self.bits(a, i)).abs_diff(order(self.bits(b, i)))
    }
}
