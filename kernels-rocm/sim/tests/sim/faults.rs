//! Wrong kernels are told, with the right diagnosis; right ones are not.

use crate::support::{Argument, TARGETS, fault, output, run, run_once, words};
use tandem_gfxsim::{FaultKind, LaunchError, Schedule, Timing};

fn input(bytes: usize) -> Argument {
    Argument::In((0..bytes).map(|at| at as u8).collect())
}

/// The fault of a kernel under each of the schedules; all must tell one.
fn faults(kernel: &str, size: [u32; 2], arguments: &[Argument]) -> Option<Vec<FaultKind>> {
    let mut found = Vec::new();
    for target in TARGETS {
        let object = crate::support::object("faulty", target)?;
        for schedule in Schedule::four() {
            let kind = fault(&object, kernel, size, arguments, &schedule);
            found.push(
                kind.unwrap_or_else(|| panic!("{kernel} passes on {target} under {schedule:?}")),
            );
        }
    }
    Some(found)
}

macro_rules! told {
    ($kernel:literal, $size:expr, $arguments:expr, $kind:pat) => {
        if let Some(found) = faults($kernel, $size, $arguments) {
            for kind in found {
                assert!(matches!(kind, $kind), "{}: {kind:?}: {kind}", $kernel);
            }
        }
    };
}

#[test]
fn a_load_to_lds_is_waited_for_before_the_barrier() {
    told!("missing_wait", [1, 256], &[input(1024), output(1024)], FaultKind::LdsInFlight { .. });
}

#[test]
fn waves_meet_at_a_barrier_before_they_read_each_other() {
    told!(
        "missing_barrier",
        [1, 256],
        &[output(1024)],
        FaultKind::LdsReadAfterWrite { .. }
            | FaultKind::LdsWriteAfterRead { .. }
            | FaultKind::LdsInFlight { .. }
            | FaultKind::LdsUninitialised { .. }
    );
}

#[test]
fn a_tile_is_refilled_when_all_have_read_it() {
    told!(
        "refilled",
        [1, 256],
        &[input(2048), output(1024)],
        FaultKind::LdsWriteAfterRead { .. }
            | FaultKind::LdsReadAfterWrite { .. }
            | FaultKind::LdsInFlight { .. }
    );
}

#[test]
fn the_same_with_waits_and_barriers_is_right() {
    for target in TARGETS {
        let Some(object) = crate::support::object("faulty", target) else { return };
        let results = run(&object, "right", [1, 256], &[input(2048), output(1024)]);
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| (at + i) as u8));
        for (i, found) in
            crate::support::words(&results[0], u32::from_le_bytes).into_iter().enumerate()
        {
            let at = (4 * i + 256) % 1024;
            assert_eq!(found, word(at).wrapping_add(word(at + 1024)), "{target}: thread {i}");
        }
    }
}

/// Whether threads read what others stored, those that read LDS and those that read memory.
fn arrived(kernel: &str, schedule: &Schedule) -> Option<[bool; 2]> {
    let object = crate::support::object("faulty", "gfx942")?;
    let arguments = [Argument::Out(vec![0xff; 1024]), output(1024)];
    let (written, _) = run_once(&object, kernel, [1, 256], &arguments, schedule)
        .unwrap_or_else(|e| panic!("{kernel}, {schedule:?}: {e}"));
    let found = words(&written[1], u32::from_le_bytes);
    Some([0, 1].map(|odd| (odd..256).step_by(2).all(|i| found[i] as usize == (i + 64) % 256)))
}

#[test]
fn a_store_to_either_is_waited_for_by_the_counter_of_where_it_goes() {
    for schedule in Schedule::four() {
        let Some(found) = arrived("waits_for_both", &schedule) else { return };
        assert_eq!(found, [true, true], "{schedule:?}");
        let Some(found) = arrived("waits_for_lds", &schedule) else { return };
        assert_eq!(found, [true, schedule.timing == Timing::Eager], "{schedule:?}");
    }
    told!(
        "waits_for_memory",
        [1, 256],
        &[output(1024), output(1024)],
        FaultKind::LdsInFlight { .. }
    );
}

#[test]
fn one_element_behind_the_end_is_out_of_bounds() {
    told!(
        "out_of_bounds",
        [1, 64],
        &[input(256), output(256)],
        FaultKind::OutOfBounds { lane: 63, write: false, bytes: 4, .. }
    );
}

#[test]
fn lds_is_written_before_it_is_read() {
    told!(
        "uninitialised",
        [1, 64],
        &[output(256)],
        FaultKind::LdsUninitialised { lane: 63, address: 256 }
    );
}

#[test]
fn a_load_is_waited_for_before_its_register_is_used() {
    told!("missing_load_wait", [1, 64], &[input(256), output(256)], FaultKind::MissingWait(_));
}

#[test]
fn what_may_only_be_read_is_not_written() {
    told!("writes", [1, 64], &[input(256)], FaultKind::ReadOnly { lane: 0, offset: 0, .. });
}

#[test]
fn lds_has_an_end() {
    told!(
        "past_lds",
        [1, 64],
        &[Argument::Out(vec![0; 256])],
        FaultKind::LdsOutOfBounds { lane: 0, size: 256, .. }
    );
}

#[test]
fn loads_to_lds_end_before_the_program() {
    told!("ends_in_flight", [1, 64], &[input(256)], FaultKind::EndInFlight);
}

#[test]
fn waiting_for_ever_ends() {
    let Some(object) = crate::support::object("faulty", "gfx942") else { return };
    for schedule in Schedule::four() {
        let schedule = Schedule { max_steps: 100_000, ..schedule };
        let kind = fault(&object, "hangs", [2, 64], &[Argument::Out(vec![0; 4])], &schedule);
        assert_eq!(kind, Some(FaultKind::StepLimit(100_000)));
    }
}

#[test]
fn a_fault_says_where() {
    let Some(object) = crate::support::object("faulty", "gfx942") else { return };
    let arguments = [input(256), output(256)];
    let result =
        crate::support::run_once(&object, "out_of_bounds", [1, 64], &arguments, &Schedule::eager());
    let Err(LaunchError::Fault(fault)) = result else { panic!("no fault") };
    assert!(fault.instruction.starts_with("global_load_dword"), "{fault}");
    let text = fault.to_string();
    assert!(
        text.contains("lane 63 reads 4 bytes")
            && text.contains("byte 256 of an argument, which has 256"),
        "{text}"
    );
}

#[test]
fn unfit_launches_do_not_begin() {
    let Some(object) = crate::support::object("faulty", "gfx942") else { return };
    let schedule = Schedule::eager();
    let run = |kernel: &str, block: u32, arguments: &[Argument]| {
        crate::support::run_once(&object, kernel, [1, block], arguments, &schedule)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(run("nothing", 64, &[]), Err("the module has no kernel `nothing`".into()));
    assert!(
        run("writes", 64, &[]).is_err_and(|e| e.contains("0 bytes of arguments, where it takes 8"))
    );
    assert!(run("writes", 65, &[output(512)]).is_err_and(|e| e.contains("of at most 64")));
    assert!(run("writes", 0, &[output(512)]).is_err());
}
