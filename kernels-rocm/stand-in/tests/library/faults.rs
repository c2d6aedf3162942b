//! What kernels do wrong stops their device, and is told once.

use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    allocate, alone, argument, call, can_load, event, function, launch, load, object, ok, stream,
    upload,
};

/// The code that a faulty kernel leaves behind, and what is told.
fn told(test: &str, kernel: &str, schedule: &str, expected: hipError_t, words: &str) {
    if !can_load() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report");
    let report = report.to_str().expect("a path");
    let settings = [
        ("TANDEM_SIM_DEVICES", "gfx942,gfx942"),
        ("TANDEM_SIM_SCHEDULE", schedule),
        ("TANDEM_SIM_REPORT", report),
    ];
    let said = alone(test, &settings, |hip| {
        let own = stream(hip);
        let module = load(hip, &object("faulty", "gfx942"));
        let (x, y) = (upload(hip, &[1; 64]), allocate(hip, 256));
        ok!(hip, hipDeviceSynchronize());
        let kernel = function(hip, module, kernel);
        let takes_two = [argument(x), argument(y)];
        let mut code = launch(hip, kernel, [1, 64], own, &takes_two);
        if code == hipErrorInvalidValue {
            code = launch(hip, kernel, [1, 64], own, &takes_two[1..]);
        }
        assert_eq!(code, hipSuccess, "the fault comes later");
        assert_eq!(call!(hip, hipStreamSynchronize(own)), expected);
        // From here on every call of the device gives it.
        assert_eq!(call!(hip, hipStreamQuery(own)), expected);
        assert_eq!(call!(hip, hipDeviceSynchronize()), expected);
        assert_eq!(call!(hip, hipMalloc(&mut null_mut(), 8)), expected);
        assert_eq!(call!(hip, hipMemsetAsync(x, 0, 8, own)), expected);
        assert_eq!(launch(hip, kernel, [1, 64], own, &takes_two), expected);
        assert_eq!(call!(hip, hipFree(x)), expected);
        assert_eq!(call!(hip, hipEventCreateWithFlags(&mut null_mut(), 0)), expected);
        // Another one goes on.
        ok!(hip, hipSetDevice(1));
        let (other, passed) = (stream(hip), event(hip, 0));
        let z = allocate(hip, 8);
        ok!(hip, hipMemsetAsync(z, 0, 8, other));
        ok!(hip, hipEventRecord(passed, other));
        ok!(hip, hipEventSynchronize(passed));
    });
    let Some(said) = said else { return };
    let written = std::fs::read_to_string(report).expect("a report");
    for text in [&said, &written] {
        let lines: Vec<_> = text.lines().filter(|line| line.contains("device 0")).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].contains(words) && lines[0].contains(kernel), "{text}");
    }
}

#[test]
fn an_access_out_of_bounds() {
    let test = "faults::an_access_out_of_bounds";
    told(test, "out_of_bounds", "eager", hipErrorIllegalAddress, "byte 256 of an allocation");
}

#[test]
fn memory_of_lds_that_nothing_wrote() {
    let test = "faults::memory_of_lds_that_nothing_wrote";
    told(test, "uninitialised", "lazy:3", hipErrorLaunchFailure, "which nothing has written");
}

#[test]
fn a_wait_that_is_missing() {
    let test = "faults::a_wait_that_is_missing";
    told(test, "missing_load_wait", "lazy", hipErrorLaunchFailure, "s_waitcnt is missing");
}

#[test]
fn memory_of_a_device_without_access() {
    if !can_load() {
        return;
    }
    let settings = [("TANDEM_SIM_DEVICES", "gfx942,gfx942")];
    let said = alone("faults::memory_of_a_device_without_access", &settings, |hip| {
        ok!(hip, hipSetDevice(1));
        let theirs = allocate(hip, 256);
        ok!(hip, hipSetDevice(0));
        let own = stream(hip);
        let kernel = function(hip, load(hip, &object("faulty", "gfx942")), "writes");
        let write = || {
            assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(theirs)]), hipSuccess);
            call!(hip, hipStreamSynchronize(own))
        };
        ok!(hip, hipDeviceEnablePeerAccess(1, 0));
        assert_eq!(write(), hipSuccess);
        // The other way is another matter.
        ok!(hip, hipSetDevice(1));
        let kernel = function(hip, load(hip, &object("faulty", "gfx942")), "writes");
        let own = stream(hip);
        ok!(hip, hipSetDevice(0));
        let ours = allocate(hip, 256);
        ok!(hip, hipSetDevice(1));
        assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(ours)]), hipSuccess);
        assert_eq!(call!(hip, hipStreamSynchronize(own)), hipErrorIllegalAddress);
    });
    if let Some(said) = said {
        assert!(said.contains("peer access is not enabled"), "{said}");
    }
}

#[test]
fn memory_that_was_freed() {
    if !can_load() {
        return;
    }
    alone("faults::memory_that_was_freed", &[], |hip| {
        let (own, gone) = (stream(hip), allocate(hip, 256));
        let kernel = function(hip, load(hip, &object("faulty", "gfx942")), "writes");
        assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(gone)]), hipSuccess);
        // Waits for the launch.
        ok!(hip, hipFree(gone));
        ok!(hip, hipStreamSynchronize(own));
        let next = allocate(hip, 256);
        assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(gone)]), hipSuccess);
        assert_eq!(call!(hip, hipStreamSynchronize(own)), hipErrorIllegalAddress);
        assert_eq!(call!(hip, hipFree(next)), hipErrorIllegalAddress);
    });
}
