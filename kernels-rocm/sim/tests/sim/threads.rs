//! Launches whose workgroups are spread over threads.

use tandem_gfxsim::{LaunchError, Schedule};

use crate::support::{Argument, TARGETS, doubles, input, output, random, run_once};

#[test]
fn any_number_of_threads_gives_the_same_bits_and_counts() {
    let count = 20_000;
    let numbers = input(&doubles(3, count), f64::to_le_bytes);
    let arguments = [
        numbers.clone(),
        numbers.clone(),
        numbers,
        output(8 * count),
        output(4 * count),
        Argument::Number(count as u32),
    ];
    let size = [count.div_ceil(256) as u32, 256];
    for target in TARGETS {
        let Some(object) = crate::support::object("arithmetic", target) else { return };
        for schedule in Schedule::four() {
            let run = |threads| {
                let schedule = Schedule { threads, ..schedule };
                run_once(&object, "fused", size, &arguments, &schedule).expect("a right kernel")
            };
            let one = run(1);
            // More steps than a launch makes before threads are begun.
            assert!(one.1.steps > 10_000, "{}", one.1.steps);
            for threads in [2, 3, 1000] {
                assert!(run(threads) == one, "{target}: {threads} threads, {schedule:?}");
            }
        }
    }
}

#[test]
fn neighbours_in_a_word_do_not_disturb_each_other() {
    // Bytes of a word belong to different workgroups' results.
    let x: Vec<u8> = random(8).map(|x| x as u8).take(4096).collect();
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        let arguments = [Argument::In(x.clone()), output(4096)];
        for schedule in Schedule::four() {
            let schedule = Schedule { threads: 2, ..schedule };
            let (found, counters) =
                run_once(&object, "scattered_bytes", [64, 64], &arguments, &schedule)
                    .expect("a right kernel");
            assert!(counters.steps > 20_000, "{}", counters.steps);
            for (at, byte) in found[0].iter().enumerate() {
                assert_eq!(*byte, x[at].wrapping_mul(3), "{target}: byte {at}");
            }
        }
    }
}

#[test]
fn the_first_workgroup_that_fails_is_told() {
    for target in TARGETS {
        let Some(object) = crate::support::object("groups", target) else { return };
        // The last workgroups have nothing to read.
        let arguments = [Argument::In(vec![1; 3000]), output(4096)];
        for threads in [1, 2, 5] {
            let schedule = Schedule { threads, resident: 1, ..Schedule::eager() };
            let error = run_once(&object, "scattered_bytes", [64, 64], &arguments, &schedule);
            let Err(LaunchError::Fault(fault)) = error.map(|_| ()) else {
                panic!("{target}: it passes")
            };
            assert_eq!(fault.workgroup, [0, 0, 0], "{target}: {fault}");
        }
    }
}
