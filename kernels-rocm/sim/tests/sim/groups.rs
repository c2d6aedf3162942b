//! What lanes, waves and workgroups do together.

use crate::support::{Argument, TARGETS, input, output, random, run, run_once, words};
use tandem_gfxsim::Schedule;

fn draw(seed: u64, count: usize) -> Vec<u32> {
    random(seed).map(|x| x as u32).take(count).collect()
}

#[test]
fn lanes_exchange_words() {
    let x = draw(1, 512);
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let arguments =
            [input(&x, u32::to_le_bytes), output(2048), output(64), output(2048), output(2048)];
        let results = run(&object, "lanes", [2, 256], &arguments);
        let sums = words(&results[0], u32::from_le_bytes);
        let masks = words(&results[1], u64::from_le_bytes);
        let fifth = words(&results[2], u32::from_le_bytes);
        let rows = words(&results[3], u32::from_le_bytes);
        let sum = |part: &[u32]| part.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
        for i in 0..512 {
            assert_eq!(sums[i], sum(&x[i / 32 * 32..][..32]), "{target}: sum of lane {i}");
            assert_eq!(fifth[i], x[i / 64 * 64 + 5], "{target}: lane {i}");
            assert_eq!(rows[i], sum(&x[i / 16 * 16..][..16]), "{target}: row of lane {i}");
        }
        for (wave, mask) in masks.iter().enumerate() {
            let odd = (0..64)
                .filter(|lane| x[wave * 64 + lane] & 1 != 0)
                .fold(0u64, |m, lane| m | 1 << lane);
            assert_eq!(*mask, odd, "{target}: mask of wave {wave}");
        }
    }
}

#[test]
fn movements_follow_the_manual() {
    let x = draw(2, 64);
    type From = fn(usize) -> Option<usize>;
    // The lane that is read; and what stands where none is: the old value, 7, or 0.
    let expected: [(From, u32); 7] = [
        (|lane| (lane % 16 < 15).then_some(lane + 1), 7),
        (|lane| (lane % 16 >= 3).then(|| lane - 3), 0),
        (|lane| Some(lane ^ 15), 7),
        (|lane| (lane / 16 % 2 == 0).then_some(lane ^ 7), 7),
        (|lane| (lane / 16 % 2 == 1).then_some(lane / 16 * 16 - usize::from(lane >= 16)), 7),
        (|lane| (lane % 16 < 8).then_some(lane / 16 * 16 + 3), 7),
        (|lane| Some(lane ^ 16), 7),
    ];
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let results =
            run(&object, "movements", [1, 64], &[input(&x, u32::to_le_bytes), output(4 * 64 * 7)]);
        let found = words(&results[0], u32::from_le_bytes);
        for (at, (from, other)) in expected.iter().enumerate() {
            for lane in 0..64 {
                let value = from(lane).map_or(*other, |lane| x[lane]);
                assert_eq!(found[64 * at + lane], value, "{target}: movement {at}, lane {lane}");
            }
        }
    }
}

#[test]
fn a_block_adds_a_row_in_one_order() {
    let x: Vec<f32> = random(3).map(|x| (x >> 40) as f32 / 1e3).take(5000).collect();
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let results =
            run(&object, "row_sums", [5, 256], &[input(&x, f32::to_le_bytes), output(40)]);
        for (row, sum) in words(&results[0], f64::from_le_bytes).into_iter().enumerate() {
            let exact: f64 = x[row * 1000..][..1000].iter().map(|x| f64::from(*x)).sum();
            assert!((sum - exact).abs() <= 1e-9 * exact, "{target}: row {row}: {sum} and {exact}");
        }
    }
}

#[test]
fn atomic_counts_lose_nothing() {
    let x: Vec<u8> = random(4).map(|x| (x >> (x & 7)) as u8).take(3001).collect();
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let arguments =
            [Argument::In(x.clone()), Argument::Out(vec![0; 1024]), Argument::Number(3001)];
        let results = run(&object, "histogram", [4, 256], &arguments);
        let counts = words(&results[0], u32::from_le_bytes);
        for value in 0..=255u8 {
            let exact = x.iter().filter(|x| **x == value).count() as u32;
            assert_eq!(counts[usize::from(value)], exact, "{target}: {value}");
        }
    }
}

#[test]
fn workgroups_wait_for_each_other() {
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let total = (0..24u64).fold(0u64, |total, block| total.wrapping_mul(3).wrapping_add(block));
        for schedule in Schedule::four() {
            let buffers = [4, 8, 100].map(|bytes| Argument::Out(vec![0; bytes]));
            let (results, _) = run_once(&object, "turns", [24, 64], &buffers, &schedule)
                .unwrap_or_else(|e| panic!("{target}: {schedule:?}: {e}"));
            assert_eq!(words(&results[1], u64::from_le_bytes), [total], "{target}: {schedule:?}");
            let mut order = words(&results[2], u32::from_le_bytes).split_off(1);
            order.sort_unstable();
            assert_eq!(order, (0..24).collect::<Vec<u32>>(), "{target}: tickets");
        }
    }
}

#[test]
fn flat_pointers_and_private_arrays() {
    let x = draw(5, 64);
    let spare = draw(6, 64);
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let arguments = [input(&x, u32::to_le_bytes), output(256), Argument::Out(Vec::new())];
        let mut arguments = arguments;
        arguments[2] = Argument::Out(spare.iter().flat_map(|x| x.to_le_bytes()).collect());
        let results = run(&object, "pointers", [1, 64], &arguments);
        for (i, found) in words(&results[0], u32::from_le_bytes).into_iter().enumerate() {
            let mut own: Vec<u32> = (0..16).map(|k| x[(i + k) % 64]).collect();
            let mut sum = 0u32;
            for k in 0..8 {
                let at = x[(i + k) % 64] as usize % 16;
                own[at] = own[at].wrapping_add(k as u32);
                sum = sum.wrapping_mul(31).wrapping_add(own[x[i] as usize % 16]);
            }
            let from = if x[i] & 1 != 0 { x[63 - i] } else { spare[i] };
            assert_eq!(found, from.wrapping_add(sum), "{target}: lane {i}");
        }
    }
}
