//! What dies see of each other: caches of their own, and what brings them together.

use tandem_gfxsim::Schedule;

use crate::support::{Argument, TARGETS, run_once, words};

/// What the reader of a kernel read before and behind the other block's write, under each schedule.
fn read(kernel: &str, schedule: impl Fn(Schedule) -> Schedule) -> Option<Vec<[u32; 2]>> {
    let mut found = Vec::new();
    for target in TARGETS {
        let object = crate::support::object("coherence", target)?;
        for given in Schedule::four() {
            let buffers = [4, 256, 8].map(|bytes| Argument::Out(vec![0; bytes]));
            let (written, _) = run_once(&object, kernel, [2, 64], &buffers, &schedule(given))
                .unwrap_or_else(|e| panic!("{kernel} on {target}, {given:?}: {e}"));
            let out = words(&written[2], u32::from_le_bytes);
            assert_eq!(words(&written[0], u32::from_le_bytes), [7], "memory has it at the end");
            found.push([out[0], out[1]]);
        }
    }
    Some(found)
}

fn without_caches(schedule: Schedule) -> Schedule {
    Schedule { caches: false, ..schedule }
}

#[test]
fn what_is_released_and_acquired_is_seen() {
    for kernel in ["handed", "handed_to_all"] {
        for found in [read(kernel, Schedule::with_caches), read(kernel, without_caches)] {
            let Some(found) = found else { return };
            assert!(found.iter().all(|pair| *pair == [0, 7]), "{kernel}: {found:?}");
        }
    }
}

#[test]
fn what_is_not_released_or_not_acquired_is_not_seen() {
    for kernel in ["not_released", "not_acquired"] {
        let Some(hidden) = read(kernel, without_caches) else { return };
        assert!(hidden.iter().all(|pair| *pair == [0, 7]), "{kernel}: {hidden:?}");
        let Some(found) = read(kernel, Schedule::with_caches) else { return };
        assert!(found.iter().all(|pair| *pair == [0, 0]), "{kernel}: {found:?}");
    }
}

#[test]
fn neighbours_in_a_line_and_atomic_counts_lose_nothing() {
    for target in TARGETS {
        let Some(object) = crate::support::object("coherence", target) else { return };
        for schedule in Schedule::four() {
            let buffers = [4 * 20, 4].map(|bytes| Argument::Out(vec![0; bytes]));
            let schedule = schedule.with_caches();
            let (written, _) = run_once(&object, "counted", [20, 64], &buffers, &schedule)
                .expect("a right kernel");
            assert_eq!(words(&written[0], u32::from_le_bytes), [45; 20], "{target}");
            assert_eq!(words(&written[1], u32::from_le_bytes), [20 * 64 * 10], "{target}");
        }
    }
}
