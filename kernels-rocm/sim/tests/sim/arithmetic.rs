//! Arithmetic of compiled kernels against the host's, bit for bit.

use crate::support::{Argument, TARGETS, doubles, input, output, random, run, words};

const COUNT: usize = 3000;

/// Whether two results are the same number; any NaN is as good as another.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn same_f32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn f64_input(values: &[f64]) -> Argument {
    input(values, f64::to_le_bytes)
}

#[test]
fn quotients_are_correctly_rounded() {
    let (a, b) = (doubles(1, COUNT), doubles(2, COUNT));
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        let arguments = [
            f64_input(&a),
            f64_input(&b),
            output(8 * COUNT),
            output(4 * COUNT),
            Argument::Number(COUNT as u32),
        ];
        let results = run(&object, "quotients", [COUNT.div_ceil(256) as u32, 256], &arguments);
        let wide = words(&results[0], f64::from_le_bytes);
        let narrow = words(&results[1], f32::from_le_bytes);
        for i in 0..COUNT {
            assert!(
                same(wide[i], a[i] / b[i]),
                "{target}: {:e} / {:e} = {:e}",
                a[i],
                b[i],
                wide[i]
            );
            let (x, y) = (a[i] as f32, b[i] as f32);
            assert!(same_f32(narrow[i], x / y), "{target}: {x:e} / {y:e} = {:e}", narrow[i]);
        }
    }
}

#[test]
fn roots_are_correctly_rounded() {
    let a = doubles(3, COUNT);
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        let arguments =
            [f64_input(&a), output(8 * COUNT), output(4 * COUNT), Argument::Number(COUNT as u32)];
        let results = run(&object, "roots", [COUNT.div_ceil(256) as u32, 256], &arguments);
        let wide = words(&results[0], f64::from_le_bytes);
        let narrow = words(&results[1], f32::from_le_bytes);
        for i in 0..COUNT {
            assert!(same(wide[i], a[i].sqrt()), "{target}: sqrt {:e} = {:e}", a[i], wide[i]);
            let x = a[i] as f32;
            assert!(same_f32(narrow[i], x.sqrt()), "{target}: sqrt {x:e} = {:e}", narrow[i]);
        }
    }
}

#[test]
fn fused_steps_round_once() {
    let [a, b, c] = [4, 5, 6].map(|seed| doubles(seed, COUNT));
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        let (wide, narrow) = (output(8 * COUNT), output(4 * COUNT));
        let arguments = [
            f64_input(&a),
            f64_input(&b),
            f64_input(&c),
            wide,
            narrow,
            Argument::Number(COUNT as u32),
        ];
        let results = run(&object, "fused", [COUNT.div_ceil(256) as u32, 256], &arguments);
        let wide = words(&results[0], f64::from_le_bytes);
        let narrow = words(&results[1], f32::from_le_bytes);
        for i in 0..COUNT {
            let expected = a[i].mul_add(b[i], c[i]) - (-a[i]).mul_add(c[i], b[i]);
            assert!(same(wide[i], expected), "{target}: {:e} {:e} {:e}", a[i], b[i], c[i]);
            let expected = (a[i] as f32).mul_add(b[i] as f32, c[i] as f32);
            assert!(same_f32(narrow[i], expected), "{target}: {:e} {:e} {:e}", a[i], b[i], c[i]);
        }
    }
}

fn integer_results(x: u64, y: u64) -> [u64; 16] {
    let y = y | 1;
    let (v, w) = (x as u32, y as u32);
    [
        x.wrapping_add(y),
        x.wrapping_sub(y),
        x.wrapping_mul(y),
        x / y,
        x % y,
        u64::from(v / w) << 32 | u64::from(v % w),
        u64::from((v as i32).wrapping_div(w as i32 | 1) as u32),
        x << (y & 63) | x >> (y >> 6 & 63),
        ((x as i64) >> (y & 63)) as u64,
        u64::from(x.count_ones())
            | u64::from(v.leading_zeros()) << 8
            | u64::from(w.trailing_zeros() + 1) << 16,
        if (x as i64) < (y as i64) { x } else { y },
        x.min(y),
        ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64,
        u64::from(v.reverse_bits()) | u64::from(w.swap_bytes()) << 32,
        u64::from((v as u16).wrapping_mul(w as u16).wrapping_add(3))
            | u64::from((v >> 8) as u8) << 16
            | u64::from(i32::from((w >> 3) as i8) as u32) << 32,
        u64::from(v > w)
            + 2 * u64::from(v as i32 > w as i32)
            + 4 * u64::from(x == y)
            + 8 * u64::from(v & 0x10 != 0),
    ]
}

#[test]
fn integers_are_exact() {
    // Numbers of every length, so that quotients have every length too.
    let draw = |seed| random(seed).map(|x| x >> (x & 63)).take(COUNT).collect::<Vec<u64>>();
    let (a, b) = (draw(7), draw(8));
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        let inputs = [input(&a, u64::to_le_bytes), input(&b, u64::to_le_bytes)];
        let arguments = [
            inputs[0].clone(),
            inputs[1].clone(),
            output(128 * COUNT),
            Argument::Number(COUNT as u32),
        ];
        let results = run(&object, "integers", [COUNT.div_ceil(256) as u32, 256], &arguments);
        let results = words(&results[0], u64::from_le_bytes);
        for (i, found) in results.chunks(16).enumerate() {
            assert_eq!(found, integer_results(a[i], b[i]), "{target}: {:#x} and {:#x}", a[i], b[i]);
        }
    }
}

fn conversion_results(x: f64) -> [u64; 8] {
    let f = x as f32;
    let whole = f > -9e18 && f < 9e18;
    [
        f.to_bits().into(),
        if whole { f as i64 as u64 } else { 0 },
        u64::from(if x > -2e9 && x < 2e9 { x as i32 } else { 7 } as u32),
        half::f16::from_f32(f).to_bits().into(),
        (if x > -9e18 && x < 9e18 { x as i64 as f64 } else { 0.0 }).to_bits(),
        x.round_ties_even().to_bits() ^ x.floor().to_bits(),
        x.max(1.0).to_bits().wrapping_add(f.min(-2.0).to_bits().into()),
        u64::from(x.is_nan())
            + 2 * u64::from(x.is_infinite())
            + 4 * u64::from(x < 0.0)
            + 8 * u64::from(f < 1.0 || f.is_nan())
            + 16 * u64::from(f.is_nan()),
    ]
}

#[test]
fn conversions_round_to_nearest() {
    let a = doubles(9, COUNT);
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        let arguments = [f64_input(&a), output(64 * COUNT), Argument::Number(COUNT as u32)];
        let results = run(&object, "conversions", [COUNT.div_ceil(256) as u32, 256], &arguments);
        let results = words(&results[0], u64::from_le_bytes);
        for (i, found) in results.chunks(8).enumerate() {
            let expected = conversion_results(a[i]);
            // The bits of a NaN are nobody's promise.
            let skipped: &[usize] = if a[i].is_nan() { &[0, 3, 5] } else { &[] };
            for at in (0..8).filter(|at| !skipped.contains(at)) {
                assert_eq!(found[at], expected[at], "{target}: result {at} of {:e}", a[i]);
            }
        }
    }
}
