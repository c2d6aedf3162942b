//! Matrix products against sums in f64, with the lane layouts that are published: rows and columns as `place`
//! in the kernels' sources says.

use tandem_gfxsim::{MatrixRule, Schedule};

use crate::support::{Argument, object, output, random, run, run_once, words};

/// Codes of FP4 in order.
const FP4: [f64; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

fn fp8(code: u8, bias: i32) -> f64 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f64::from(code & 7));
    let size = if exponent == 0 {
        fraction / 8.0 * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction / 8.0) * 2f64.powi(exponent - bias)
    };
    if code & 0x80 != 0 { -size } else { size }
}

/// Rows times columns, each `depth` long.
fn product(a: &[f64], b: &[f64], side: usize, depth: usize) -> Vec<f32> {
    let row = |x: &[f64], at: usize| x[at * depth..][..depth].to_vec();
    let sum = |r: usize, c: usize| row(a, r).iter().zip(row(b, c)).map(|(x, y)| x * y).sum::<f64>();
    (0..side * side).map(|at| sum(at / side, at % side) as f32).collect()
}

fn draw(seed: u64, count: usize) -> Vec<u8> {
    random(seed).map(|x| (x >> 13) as u8).take(count).collect()
}

#[test]
pub fn bf16_products_on_both_targets() {
    for target in crate::support::TARGETS {
        let Some(object) = object("matrices", target) else { return };
        for (kernel, side, depth) in [("bf16_32x32x8", 32, 8), ("bf16_16x16x16", 16, 16)] {
            let values = |seed| -> Vec<f64> {
                random(seed)
                    .map(|x| f64::from((x >> 50) as i32 - 8192) / 64.0)
                    .map(bf16)
                    .take(side * depth)
                    .collect()
            };
            let (a, b) = (values(1), values(2));
            let bytes = |x: &[f64]| {
                Argument::In(
                    x.iter()
                        .flat_map(|x| ((*x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec())
                        .collect(),
                )
            };
            let results =
                run(&object, kernel, [1, 64], &[bytes(&a), bytes(&b), output(4 * side * side)]);
            assert_eq!(
                words(&results[0], f32::from_le_bytes),
                product(&a, &b, side, depth),
                "{target}: {kernel}"
            );
        }
    }
}

/// The nearest number that bfloat16 has.
fn bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

#[test]
pub fn fp8_products_in_each_dialect() {
    for (target, bias, nan) in [("gfx942", 8, 0x80), ("gfx950", 7, 0x7f)] {
        let Some(object) = object("matrices", target) else { return };
        let codes = |seed| -> Vec<u8> {
            draw(seed, 512)
                .into_iter()
                .map(|c| if c == nan || c & 0x7f == nan & 0x7f { 0x11 } else { c })
                .collect()
        };
        let (a, b) = (codes(3), codes(4));
        let arguments = [Argument::In(a.clone()), Argument::In(b.clone()), output(4096)];
        let decode = |codes: &[u8]| codes.iter().map(|c| fp8(*c, bias)).collect::<Vec<_>>();
        let expected = product(&decode(&a), &decode(&b), 32, 16);
        let results = run(&object, "fp8_32x32x16", [1, 64], &arguments);
        assert_eq!(words(&results[0], f32::from_le_bytes), expected, "{target}");
        let measured = Schedule { matrix: MatrixRule::Cdna3, ..Schedule::eager() };
        let (results, counters) = run_once(&object, "fp8_32x32x16", [1, 64], &arguments, &measured)
            .expect("a right kernel");
        for (found, exact) in words(&results[0], f32::from_le_bytes).into_iter().zip(expected) {
            // Cut to 24 bits below the largest product, which is below 2^17.
            assert!((found - exact).abs() <= 0.25, "{target}: {found} and {exact}");
        }
        assert_eq!(counters.matrix_cycles, 32, "{target}");
    }
}

/// 64 codes of FP4 a row, packed, and a scale for each 32: the values, the codes, the scales.
fn fp4_rows(seed: u64) -> (Vec<f64>, Vec<u8>, Vec<u8>) {
    let packed = draw(seed, 32 * 32);
    let scales: Vec<u8> = draw(seed + 1, 64).into_iter().map(|x| 122 + x % 11).collect();
    let code = |at: usize| packed[at / 2] >> (4 * (at % 2)) & 15;
    let scale = |at: usize| 2f64.powi(i32::from(scales[at / 32]) - 127);
    let values = (0..2048).map(|at| FP4[usize::from(code(at))] * scale(at)).collect();
    (values, packed, scales)
}

#[test]
pub fn scaled_fp4_products() {
    let Some(object) = object("matrices", "gfx950") else { return };
    let ((a, a_codes, a_scales), (b, b_codes, b_scales)) = (fp4_rows(5), fp4_rows(7));
    let arguments = [a_codes, b_codes, a_scales, b_scales].map(Argument::In);
    let arguments: Vec<Argument> = arguments.into_iter().chain([output(4096)]).collect();
    let results = run(&object, "fp4_32x32x64", [1, 64], &arguments);
    assert_eq!(words(&results[0], f32::from_le_bytes), product(&a, &b, 32, 64));
}

#[test]
pub fn scales_are_bytes_of_a_word() {
    let Some(object) = object("matrices", "gfx950") else { return };
    let ((a, a_codes, a_scales), (b, b_codes, b_scales)) = (fp4_rows(13), fp4_rows(15));
    // The byte that is meant among others.
    let among = |scales: &[u8], byte: usize| -> Vec<u8> {
        let word = |scale: &u8| {
            let mut word = [120, 121, 131, 132];
            word[byte] = *scale;
            word
        };
        scales.iter().flat_map(word).collect()
    };
    let (a_scales, b_scales) = (among(&a_scales, 1), among(&b_scales, 2));
    let arguments = [a_codes, b_codes, a_scales, b_scales].map(Argument::In);
    let arguments: Vec<Argument> = arguments.into_iter().chain([output(4096)]).collect();
    let results = run(&object, "fp4_scale_bytes", [1, 64], &arguments);
    assert_eq!(words(&results[0], f32::from_le_bytes), product(&a, &b, 32, 64));
}

#[test]
pub fn scaled_products_of_mixed_formats_lie_in_mixed_orders() {
    let Some(object) = object("matrices", "gfx950") else { return };
    let codes: Vec<u8> =
        draw(9, 2048).into_iter().map(|c| if c & 0x7f == 0x7f { 0x22 } else { c }).collect();
    let scales: Vec<u8> = draw(10, 64).into_iter().map(|x| 124 + x % 7).collect();
    let scale = |at: usize| 2f64.powi(i32::from(scales[at / 32]) - 127);
    let a: Vec<f64> =
        codes.iter().enumerate().map(|(at, code)| fp8(*code, 7) * scale(at)).collect();
    let (b, b_codes, b_scales) = fp4_rows(11);
    let arguments = [codes, b_codes, scales, b_scales].map(Argument::In);
    let arguments: Vec<Argument> = arguments.into_iter().chain([output(4096)]).collect();
    let results = run(&object, "fp8_fp4_32x32x64", [1, 64], &arguments);
    assert_eq!(words(&results[0], f32::from_le_bytes), product(&a, &b, 32, 64));
}

#[test]
pub fn transposing_reads_give_columns() {
    let Some(object) = object("matrices", "gfx950") else { return };
    let x = draw(12, 512);
    let results = run(
        &object,
        "columns",
        [1, 64],
        &[Argument::In(x.clone()), output(512), output(512), output(512)],
    );
    let nibble = |bytes: &[u8], at: usize| bytes[at / 2] >> (4 * (at % 2)) & 15;
    for group in 0..4 {
        // The 16 lanes' data are a matrix of 16 columns: 4 rows of shorts, 8 of bytes, or 16 of nibbles.
        let own = &x[group * 128..][..128];
        for lane in 0..16 {
            let at = group * 16 + lane;
            for row in 0..8 {
                assert_eq!(
                    results[0][at * 8 + row],
                    own[row * 16 + lane],
                    "byte {row} of lane {at}"
                );
            }
            for byte in 0..8 {
                let row = byte / 2;
                assert_eq!(
                    results[2][at * 8 + byte],
                    own[row * 32 + lane * 2 + byte % 2],
                    "short {row} of lane {at}"
                );
            }
            for row in 0..16 {
                assert_eq!(
                    nibble(&results[1], at * 16 + row),
                    nibble(own, row * 16 + lane),
                    "nibble {row} of {at}"
                );
            }
        }
    }
}
