//! Scale rules by the numbers of the device headers.

use tandem_hal::{Elem, Enc};

/// How a block becomes codes and a scale: `Rule` of the device headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Rule {
    /// E4M3 codes, a power of two.
    Fp8 = 0,
    /// E2M1 codes, a power of two.
    Mxfp4 = 1,
    /// E2M1 codes, an E4M3 scale.
    Nvfp4 = 2,
    /// E4M3 codes, an f32 scale.
    Fp8F32 = 3,
}

impl Rule {
    /// The rule of an encoding and the codes under one scale, if kernels here have it.
    pub(super) fn of(enc: Enc) -> Option<(Rule, u64)> {
        let Enc::Scaled { code, scale, rows: 1, cols } = enc else { return None };
        let rule = match (code, scale) {
            (Elem::E4m3Fn, Elem::Ue8m0) => Rule::Fp8,
            (Elem::E2m1, Elem::Ue8m0) => Rule::Mxfp4,
            (Elem::E2m1, Elem::E4m3Fn) => Rule::Nvfp4,
            (Elem::E4m3Fn, Elem::F32) => Rule::Fp8F32,
            _ => return None,
        };
        Some((rule, u64::from(cols)))
    }
}
