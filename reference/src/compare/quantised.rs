//! Outputs of codes and scales under a tolerance: their values, to a step of the code.

use super::{Difference, coordinate};
use crate::Tensor;
use tandem_hal::{Elem, Enc, Form, Record, View};

/// Share of the values that may differ at all: a rounding that goes the other way is rare.
const SHARE: f64 = 1.0 / 16.0;
/// Values that may differ in an output too small for the share: one block whose scale moved.
const BLOCK: usize = 32;

/// Compare values to one step of their codes.
pub(super) fn judge(enc: Enc, shape: &[u64], got: &[u8], want: &[u8]) -> Result<(), Difference> {
    let (a, b) = (values(enc, shape, got), values(enc, shape, want));
    // Toggling the lowest bit of a code moves its value by one step.
    let step = |bytes: &[u8], at: &[f32]| -> Vec<f32> {
        let moved = values(enc, shape, &toggled(enc, shape, bytes));
        moved.iter().zip(at).map(|(m, v)| (m - v).abs()).collect()
    };
    let (step_a, step_b) = (step(got, &a), step(want, &b));
    let allowed = BLOCK.max((SHARE * a.len() as f64) as usize);
    let mut differ = 0;
    for i in 0..a.len() {
        let fail = |why: &str| Difference {
            coordinate: coordinate(&values_shape(enc, shape), i as u64),
            got: format!("0x{:08x} ({:e})", a[i].to_bits(), a[i]),
            want: format!("0x{:08x} ({:e})", b[i].to_bits(), b[i]),
            why: why.into(),
        };
        if a[i].is_nan() != b[i].is_nan() {
            return Err(fail("NaN at one place only"));
        }
        if a[i].is_nan() || a[i] == b[i] {
            continue;
        }
        // Beside the NaN code there is no step; the largest code's own is an eighth at most.
        let fallback = a[i].abs().max(b[i].abs()) / 8.0;
        let steps = [step_a[i], step_b[i]];
        let step = steps.into_iter().filter(|s| s.is_finite()).fold(0.0, f32::max);
        let step = if steps.iter().any(|s| s.is_nan()) { step.max(fallback) } else { step };
        if (a[i] - b[i]).abs() > step {
            return Err(fail("more than a step of the code apart"));
        }
        differ += 1;
        if differ > allowed {
            return Err(fail("too many values a step apart"));
        }
    }
    Ok(())
}

fn values_shape(enc: Enc, shape: &[u64]) -> Vec<u64> {
    match enc {
        Enc::Record(record) => {
            let entries = shape.iter().product();
            vec![entries, u64::from(record.width)]
        }
        Enc::Plain(_) | Enc::Scaled { .. } => shape.to_vec(),
    }
}

fn values(enc: Enc, shape: &[u64], bytes: &[u8]) -> Vec<f32> {
    let codes = View::size(enc, shape).map_or(0, |(c, _)| c as usize);
    let (codes, scales) = bytes.split_at(codes);
    let tensor = Tensor::dense(enc, shape, codes, scales);
    match enc {
        Enc::Record(_) => {
            let entries: u64 = shape.iter().product();
            (0..entries).flat_map(|at| tensor.entry(at as i32).unwrap_or_default()).collect()
        }
        Enc::Plain(_) | Enc::Scaled { .. } => {
            (0..tensor.rows()).flat_map(|r| tensor.row(r).into_owned()).collect()
        }
    }
}

/// The bytes with the lowest bit of every code flipped.
fn toggled(enc: Enc, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut moved = bytes.to_vec();
    match enc {
        Enc::Scaled { code, .. } => {
            let codes = View::size(enc, shape).map_or(0, |(c, _)| c as usize);
            flip(code, &mut moved[..codes]);
        }
        Enc::Record(record) => {
            for entry in moved.chunks_exact_mut(record.bytes() as usize) {
                for (elem, range) in codes_of(record) {
                    flip(elem, &mut entry[range]);
                }
            }
        }
        Enc::Plain(elem) => flip(elem, &mut moved),
    }
    moved
}

/// Where the codes of an entry are, and what they are.
fn codes_of(record: Record) -> Vec<(Elem, std::ops::Range<usize>)> {
    let width = record.width as usize;
    match record.form {
        Form::Mxfp8 | Form::Fp8 => vec![(Elem::E4m3Fn, 0..width)],
        Form::Mxfp8Fnuz => vec![(Elem::E4m3Fnuz, 0..width)],
        Form::Nvfp4 | Form::Mxfp4 => vec![(Elem::E2m1, 0..width / 2)],
        Form::Fp8Rope => {
            let codes = width - 64;
            vec![(Elem::E4m3Fn, 0..codes), (Elem::Bf16, codes..codes + 128)]
        }
        Form::Bf16 => vec![(Elem::Bf16, 0..2 * width)],
        Form::F32 => vec![(Elem::F32, 0..4 * width)],
    }
}

fn flip(elem: Elem, codes: &mut [u8]) {
    let (step, mask) = match elem {
        Elem::E2m1 => (1, 0x11),
        other => (other.bits() as usize / 8, 1),
    };
    for code in codes.iter_mut().step_by(step) {
        *code ^= mask;
    }
}
