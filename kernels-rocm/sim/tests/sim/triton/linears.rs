//! Linears: codes in every dialect, with and without scales.

use super::{Argument, Kernel, ours, triton};
use crate::support::{TARGETS, random, words};
use tandem_gfxsim::Schedule;

/// Rows and columns of Triton's tile; two tiles each way.
const TILE: usize = 128;
const TOKENS: usize = 2 * TILE;
const N: usize = TILE;
const K: usize = 256;

/// What codes and scales are drawn from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Draw {
    /// Few bits, so that every order of adding is exact.
    Integers,
    /// All codes that are numbers, scales of several binades.
    Any,
}

/// One side of a product: values by row, codes and scales as they lie.
struct Side {
    values: Vec<f64>,
    codes: Vec<u8>,
    scales: Vec<u8>,
}

/// The value of a code with so many bits of exponent and fraction, signed.
fn minifloat(code: u8, exponents: u32, fractions: u32, bias: i32) -> f64 {
    let exponent = i32::from(code >> fractions) & ((1 << exponents) - 1);
    let fraction = f64::from(u32::from(code) & ((1 << fractions) - 1)) / f64::from(1 << fractions);
    let size = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if code >> (exponents + fractions) & 1 == 1 { -size } else { size }
}

/// Codes by their values: the dialect of bias 7 or 8, or FP4 one code a byte.
fn decode(code: u8, bias: Option<i32>) -> f64 {
    match bias {
        Some(bias) => minifloat(code, 4, 3, bias),
        None => minifloat(code, 2, 1, 1),
    }
}

/// Codes that are numbers; whole ones from -4 to 4 of the few.
fn codes(draw: Draw, bias: Option<i32>, seed: u64, count: usize) -> Vec<u8> {
    let few = |code: &u8| {
        let x = decode(*code, bias);
        x == x.trunc() && x.abs() <= 4.0
    };
    let is_number = |code: &u8| match bias {
        Some(8) => *code != 0x80,
        Some(_) => code & 0x7f != 0x7f,
        None => *code < 16,
    };
    let all = (0..=u8::MAX).filter(is_number);
    let taken: Vec<u8> = all.filter(|code| draw == Draw::Any || few(code)).collect();
    random(seed).map(|x| taken[(x >> 20) as usize % taken.len()]).take(count).collect()
}

/// Rows of `K` codes with a scale for `scale_rows` rows by 32 columns; FP4 is packed.
fn side(draw: Draw, bias: Option<i32>, scale_rows: usize, seed: u64, rows: usize) -> Side {
    let codes = codes(draw, bias, seed, rows * K);
    let spread = if draw == Draw::Any { 9 } else { 3 };
    let scale = |x: u64| 127 - spread / 2 + (x >> 30) as u8 % spread;
    let scales: Vec<u8> = random(seed + 1).map(scale).take(rows / scale_rows * K / 32).collect();
    let value = |at: usize| {
        let (row, column) = (at / K, at % K);
        let scale = scales[row / scale_rows * (K / 32) + column / 32];
        decode(codes[at], bias) * 2f64.powi(i32::from(scale) - 127)
    };
    let values = (0..rows * K).map(value).collect();
    let packed = codes.chunks(2).map(|pair| pair[0] | pair[1] << 4);
    let codes = if bias.is_none() { packed.collect() } else { codes.clone() };
    Side { values, codes, scales }
}

/// Sums of products in f64, and of their magnitudes.
fn products(x: &[f64], weight: &[f64]) -> Vec<(f64, f64)> {
    let rows = x.chunks(K).flat_map(|row| weight.chunks(K).map(move |column| (row, column)));
    let sum = |(row, column): (&[f64], &[f64])| {
        row.iter()
            .zip(column)
            .fold((0.0, 0.0), |(sum, size), (x, w)| (sum + x * w, size + (x * w).abs()))
    };
    rows.map(sum).collect()
}

fn bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

fn bf16_values(bytes: &[u8]) -> Vec<f64> {
    words(bytes, |x| half::bf16::from_le_bytes(x).to_f64())
}

/// Compares results in bf16: integers exactly, others within a place and what f32 sums lose.
fn compare(what: &str, draw: Draw, found: &[f64], expected: &[(f64, f64)]) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, (sum, size))) in found.iter().zip(expected).enumerate() {
        let bound = match draw {
            Draw::Integers => 0.0,
            Draw::Any => bf16(*sum).abs() / 128.0 + size * 2f64.powi(-20),
        };
        let difference = (found - bf16(*sum)).abs();
        assert!(difference <= bound, "{what}: element {at} is {found}, not {sum}");
    }
}

/// A kernel of ours: its object, its name, and blocks and threads of a launch.
struct Own(&'static str, &'static str, [u32; 2]);

/// Linears of ours and Triton's on the same operands, with scales.
fn all_scaled(name: &str, owns: &[Own], bias: Option<i32>, scale_rows: usize) {
    for target in TARGETS {
        let Some(theirs) = triton(name, target) else { return };
        for (seed, draw) in [(1, Draw::Integers), (5, Draw::Any)] {
            let x = side(draw, Some(7), 1, seed, TOKENS);
            let weight = side(draw, bias, scale_rows, seed + 2, N);
            let expected = products(&x.values, &weight.values);
            let arguments = [
                Argument::In(&x.codes),
                Argument::In(&x.scales),
                Argument::In(&weight.codes),
                Argument::In(&weight.scales),
                Argument::Out(2 * TOKENS * N),
                Argument::U32(N as u32),
                Argument::U32(K as u32),
            ];
            let grid = [(TOKENS / TILE) as u32, (N / TILE) as u32];
            let found = theirs.same_under_all(grid, &arguments);
            compare(&format!("Triton's {name} on {target}"), draw, &bf16_values(&found), &expected);
            for own in owns {
                let Some(bytes) = own.run(target, &x, &weight) else { continue };
                let what = format!("{} on {target}", own.1);
                compare(&what, draw, &bf16_values(&bytes), &expected);
                assert!(draw == Draw::Any || bytes == found, "{what}: other bits");
            }
        }
    }
}

impl Own {
    /// What it makes of the operands, the same under every schedule; none on a target that has no such kernel.
    fn run(&self, target: &str, x: &Side, weight: &Side) -> Option<Vec<u8>> {
        let Own(object, kernel, [blocks, threads]) = *self;
        let ours = ours(object, kernel, target, threads)?;
        if !ours.object.kernels().any(|name| name == kernel) {
            assert!(kernel.ends_with("__bf16") && target == "gfx950", "{kernel}");
            return None;
        }
        let (n, k, tokens) = (N as u64, K as u64, TOKENS as u64);
        let (rows, y) =
            (Argument::View(&x.codes, &x.scales, k), Argument::OutView(2 * TOKENS * N, n));
        let (low, high) = weight.codes.split_at(weight.codes.len() / 2);
        let (low_scales, high_scales) = weight.scales.split_at(weight.scales.len() / 2);
        // One expert that all rows go to, with the first half of the outputs as gates.
        let group = [0, tokens].into_iter().chain(0..tokens);
        let lists: Vec<u8> = group.flat_map(u64::to_le_bytes).collect();
        let arguments = if kernel.starts_with("moe_") {
            let weights = [(low, low_scales), (high, high_scales)];
            let [w1, w3] = weights.map(|(codes, scales)| Argument::View(codes, scales, k));
            let views = [rows, w1, w3, Argument::View(&lists, &[], 0), y];
            [&views[..], &[1, 0, 1, 1, k, n / 2].map(Argument::U64)].concat()
        } else {
            let weight = Argument::View(&weight.codes, &weight.scales, k);
            [&[rows, weight, y][..], &[n, k, tokens].map(Argument::U64)].concat()
        };
        Some(match kernel.ends_with("__portable") {
            // Slow.
            true => ours.run([blocks, 1], &arguments, &Schedule::eager()).0,
            false => ours.same_under_all([blocks, 1], &arguments),
        })
    }
}

#[test]
fn mxfp8_linears_are_tritons() {
    let owns = [
        Own("gemm.mxfp8_linear", "gemm_mxfp8__portable", [64, 128]),
        Own("gemm.mxfp8_tiles", "gemm_mxfp8__narrow", [32, 256]),
        Own("gemm.mxfp8_tiles", "gemm_mxfp8__wide", [8, 256]),
    ];
    all_scaled("mxfp8", &owns, Some(7), 32);
}

#[test]
fn mxfp4_linears_are_tritons() {
    let owns = [
        Own("gemm.mxfp4_linear", "gemm_mxfp4__portable", [64, 128]),
        Own("moe.expert_tiles", "moe_gate_up__matrix", [(N / 32) as u32, 256]),
        Own("moe.expert_tiles", "moe_gate_up__bf16", [(N / 32) as u32, 256]),
    ];
    all_scaled("mxfp4", &owns, None, 1);
}

/// Tokens and weight without scales through Triton's kernel.
fn plain(theirs: &Kernel, x: &[u8], weight: &[u8], bytes: usize) -> Vec<u8> {
    let sizes = [Argument::U32(N as u32), Argument::U32(K as u32)];
    let operands = [Argument::In(x), Argument::In(weight), Argument::Out(bytes)];
    let grid = [(TOKENS / TILE) as u32, (N / TILE) as u32];
    theirs.same_under_all(grid, &[&operands[..], &sizes].concat())
}

#[test]
fn bf16_linears_are_tritons() {
    let draw = |seed, rows: usize| -> Vec<f64> {
        random(seed).map(|x| (x >> 40) as f64 % 33.0 - 16.0).take(rows * K).collect()
    };
    let (x, weight) = (draw(1, TOKENS), draw(2, N));
    let bytes = |values: &[f64]| -> Vec<u8> {
        values.iter().flat_map(|x| half::bf16::from_f64(*x).to_le_bytes()).collect()
    };
    let (x_bytes, weight_bytes) = (bytes(&x), bytes(&weight));
    let expected = products(&x, &weight);
    for target in TARGETS {
        let Some(theirs) = triton("bf16", target) else { return };
        let Some(ours) = ours("gemm.bf16_linear", "gemm_bf16__portable", target, 128) else {
            return;
        };
        let found = plain(&theirs, &x_bytes, &weight_bytes, 2 * TOKENS * N);
        compare(
            &format!("Triton's bf16 on {target}"),
            Draw::Integers,
            &bf16_values(&found),
            &expected,
        );
        let arguments = [
            Argument::View(&x_bytes, &[], K as u64),
            Argument::View(&weight_bytes, &[], K as u64),
            // No bias.
            Argument::U64(0),
            Argument::U64(0),
            Argument::U64(0),
            Argument::OutView(2 * TOKENS * N, N as u64),
            Argument::U64(N as u64),
            Argument::U64(K as u64),
            Argument::U64(TOKENS as u64),
        ];
        assert!(
            ours.run([64, 1], &arguments, &Schedule::eager()).0 == found,
            "{target}: other bits"
        );
    }
}

/// Each target's own dialect straight into its matrix units.
#[test]
fn fp8_products_are_tritons() {
    for (target, bias) in TARGETS.into_iter().zip([8, 7]) {
        let Some(theirs) = triton("fp8", target) else { return };
        for (seed, draw) in [(11, Draw::Integers), (15, Draw::Any)] {
            let x = codes(draw, Some(bias), seed, TOKENS * K);
            let weight = codes(draw, Some(bias), seed + 1, N * K);
            let values = |codes: &[u8]| -> Vec<f64> {
                codes.iter().map(|code| decode(*code, Some(bias))).collect()
            };
            let found = plain(&theirs, &x, &weight, 4 * TOKENS * N);
            let expected = products(&values(&x), &values(&weight));
            for (found, (sum, size)) in words(&found, f32::from_le_bytes).iter().zip(&expected) {
                // Every step of the sum is rounded to f32.
                let bound = if draw == Draw::Integers { 0.0 } else { size * 2f64.powi(-20) };
                assert!((f64::from(*found) - sum).abs() <= bound, "{target}: {found}, not {sum}");
            }
        }
    }
}
