//! Reductions over a row, whose lanes exchange what they have.

use super::{Argument, ours, triton};
use crate::support::{TARGETS, random, words};
use tandem_gfxsim::Schedule;

const ROWS: usize = 3;
/// Not a multiple of the block.
const WIDTH: usize = 976;

#[test]
fn softmax_of_rows_is_tritons() {
    let x: Vec<f32> =
        random(1).map(|x| ((x >> 40) as f32 / 1e6 - 8.0) * 1.5).take(ROWS * WIDTH).collect();
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    for target in TARGETS {
        let Some(theirs) = triton("softmax", target) else { return };
        let arguments =
            [Argument::In(&bytes), Argument::Out(bytes.len()), Argument::U32(WIDTH as u32)];
        let found = theirs.same_under_all([ROWS as u32, 1], &arguments);
        let found = words(&found, f32::from_le_bytes);
        for (row, found) in x.chunks(WIDTH).zip(found.chunks(WIDTH)) {
            let most = row.iter().fold(f64::MIN, |most, x| most.max(f64::from(*x)));
            let powers: Vec<f64> = row.iter().map(|x| (f64::from(*x) - most).exp()).collect();
            let total: f64 = powers.iter().sum();
            for (found, power) in found.iter().zip(powers) {
                let expected = power / total;
                // The power of two is of a product that is rounded to f32: up to 36, so 2 units of 2^-20.
                let difference = (f64::from(*found) - expected).abs();
                assert!(difference <= expected * 4e-6, "{target}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn norms_of_rows_are_tritons() {
    let draw = |seed, count| -> Vec<half::bf16> {
        let values = random(seed).map(|x| half::bf16::from_f32((x >> 44) as f32 / 1e5 - 5.0));
        values.take(count).collect()
    };
    let bytes = |values: &[half::bf16]| -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    };
    let (x, weight) = (bytes(&draw(1, ROWS * WIDTH)), bytes(&draw(2, WIDTH)));
    let (eps, width) = (1e-6, WIDTH as u64);
    for target in TARGETS {
        let Some(theirs) = triton("norm", target) else { return };
        let Some(ours) = ours("norm.rms", "norm_rms__portable", target, 128) else { return };
        let arguments = [
            Argument::In(&x),
            Argument::In(&weight),
            Argument::Out(x.len()),
            Argument::U32(WIDTH as u32),
            Argument::F32(eps),
        ];
        let found = theirs.same_under_all([ROWS as u32, 1], &arguments);
        let arguments = [
            Argument::View(&x, &[], width),
            Argument::View(&weight, &[], width),
            Argument::OutView(x.len(), width),
            Argument::U64(width),
            Argument::F32(eps),
            Argument::U64(ROWS as u64),
        ];
        let own = ours.run([2, 1], &arguments, &Schedule::eager()).0;
        let codes = |bytes: &[u8]| words(bytes, u16::from_le_bytes);
        let pairs = codes(&found).into_iter().zip(codes(&own));
        // The reciprocal root is rounded twice there and once here: a few results are on the other side.
        let apart: Vec<u16> = pairs.map(|(a, b)| a.abs_diff(b)).filter(|d| *d > 0).collect();
        assert!(apart.iter().all(|difference| *difference == 1), "{target}: {apart:?}");
        assert!(apart.len() <= ROWS * WIDTH / 100, "{target}: {} differ", apart.len());
    }
}
