//! Streams and events.

use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    ON_DEVICE, allocate, alone, argument, call, can_load, download, event, function, launch, load,
    object, ok, pinned, set_word, stream, upload,
};

/// A kernel that ends when a word of pinned memory is not 0, and what it looks at.
fn gate(hip: &Hip) -> (hipFunction_t, *mut u32) {
    let module = load(hip, &object("faulty", "gfx942"));
    let flag = pinned(hip, 1);
    set_word(flag, 0, 0);
    (function(hip, module, "hangs"), flag)
}

#[test]
fn a_stream_is_in_order_and_others_wait_for_its_events() {
    if !can_load() {
        return;
    }
    alone("streams::a_stream_is_in_order_and_others_wait_for_its_events", &[], |hip| {
        let (first, second) = (stream(hip), stream(hip));
        let (kernel, flag) = gate(hip);
        let (x, y) = (upload(hip, &[1, 2]), allocate(hip, 8));
        ok!(hip, hipDeviceSynchronize());
        let passed = event(hip, hipEventDisableTiming);
        ok!(hip, hipEventQuery(passed));
        ok!(hip, hipEventSynchronize(passed));
        assert_eq!(launch(hip, kernel, [1, 64], first, &[argument(flag)]), hipSuccess);
        ok!(hip, hipMemsetAsync(x, 0, 4, first));
        ok!(hip, hipEventRecord(passed, first));
        ok!(hip, hipStreamWaitEvent(second, passed, 0));
        ok!(hip, hipMemcpyAsync(y, x, 8, ON_DEVICE, second));
        assert_eq!(call!(hip, hipStreamQuery(first)), hipErrorNotReady);
        assert_eq!(call!(hip, hipStreamQuery(second)), hipErrorNotReady);
        assert_eq!(call!(hip, hipEventQuery(passed)), hipErrorNotReady);
        // The host's word lets the kernel end.
        set_word(flag, 0, 1);
        assert_eq!(download(hip, y, 2, second), [0, 2]);
        ok!(hip, hipEventQuery(passed));
        ok!(hip, hipEventSynchronize(passed));
        ok!(hip, hipStreamSynchronize(first));
        ok!(hip, hipStreamQuery(first));
        ok!(hip, hipStreamDestroy(first));
        assert_eq!(call!(hip, hipStreamSynchronize(first)), hipErrorInvalidHandle);
        assert_eq!(call!(hip, hipStreamDestroy(first)), hipErrorInvalidHandle);
        assert_eq!(call!(hip, hipStreamDestroy(null_mut())), hipErrorInvalidHandle);
        ok!(hip, hipEventDestroy(passed));
        assert_eq!(call!(hip, hipEventRecord(passed, second)), hipErrorInvalidHandle);
        assert_eq!(call!(hip, hipEventDestroy(passed)), hipErrorInvalidHandle);
        let wrong = call!(hip, hipStreamCreateWithFlags(&mut null_mut(), 8));
        assert_eq!(wrong, hipErrorInvalidValue);
    });
}

#[test]
fn a_blocking_stream_keeps_in_turn_with_the_default_one() {
    if !can_load() {
        return;
    }
    alone("streams::a_blocking_stream_keeps_in_turn_with_the_default_one", &[], |hip| {
        let mut blocking = null_mut();
        ok!(hip, hipStreamCreateWithFlags(&mut blocking, 0));
        let (kernel, flag) = gate(hip);
        let free = stream(hip);
        assert_eq!(launch(hip, kernel, [1, 64], blocking, &[argument(flag)]), hipSuccess);
        let page = pinned(hip, 2);
        ok!(hip, hipMemsetAsync(page.cast(), 1, 4, free));
        ok!(hip, hipStreamSynchronize(free));
        ok!(hip, hipMemsetAsync(page.cast(), 2, 4, null_mut()));
        assert_eq!(call!(hip, hipStreamQuery(null_mut())), hipErrorNotReady);
        set_word(flag, 0, 1);
        ok!(hip, hipStreamSynchronize(null_mut()));
        assert_eq!(crate::support::word(page, 0), 0x0202_0202);
        ok!(hip, hipStreamQuery(blocking));
    });
}

#[test]
fn events_tell_time_when_they_keep_it() {
    alone("streams::events_tell_time_when_they_keep_it", &[], |hip| {
        let own = stream(hip);
        let (start, stop, untimed) =
            (event(hip, 0), event(hip, 0), event(hip, hipEventDisableTiming));
        let mut time = -1.0f32;
        let early = call!(hip, hipEventElapsedTime(&mut time, start, stop));
        assert_eq!(early, hipErrorInvalidHandle);
        ok!(hip, hipEventRecord(start, own));
        let memory = allocate(hip, 8 << 20);
        ok!(hip, hipMemsetAsync(memory, 3, 8 << 20, own));
        ok!(hip, hipEventRecord(stop, own));
        ok!(hip, hipEventRecord(untimed, own));
        ok!(hip, hipEventSynchronize(stop));
        ok!(hip, hipEventElapsedTime(&mut time, start, stop));
        assert!(time > 0.0 && time < 1e6, "{time}");
        ok!(hip, hipStreamSynchronize(own));
        let code = call!(hip, hipEventElapsedTime(&mut time, start, untimed));
        assert_eq!(code, hipErrorInvalidHandle);
        let code = call!(hip, hipEventCreateWithFlags(&mut null_mut(), 0x100));
        assert_eq!(code, hipErrorInvalidValue);
    });
}

#[test]
fn devices_wait_for_each_other_and_share_what_they_may() {
    if !can_load() {
        return;
    }
    let settings = [("TANDEM_SIM_DEVICES", "MI300X,MI355X")];
    alone("streams::devices_wait_for_each_other_and_share_what_they_may", &settings, |hip| {
        let own = stream(hip);
        let (kernel, flag) = gate(hip);
        assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(flag)]), hipSuccess);
        let x = upload(hip, &[5, 6]);
        let passed = event(hip, hipEventDisableTiming);
        ok!(hip, hipMemsetAsync(x, 9, 4, own));
        ok!(hip, hipEventRecord(passed, own));
        ok!(hip, hipSetDevice(1));
        let (theirs, y) = (stream(hip), allocate(hip, 8));
        assert_eq!(call!(hip, hipEventRecord(passed, theirs)), hipErrorInvalidHandle);
        // Kernels and streams belong to a device.
        let wrong = launch(hip, kernel, [1, 64], theirs, &[argument(flag)]);
        assert_eq!(wrong, hipErrorInvalidHandle);
        ok!(hip, hipStreamWaitEvent(theirs, passed, 0));
        // Copies reach every device.
        ok!(hip, hipMemcpyAsync(y, x, 8, ON_DEVICE, theirs));
        assert_eq!(call!(hip, hipStreamQuery(theirs)), hipErrorNotReady);
        set_word(flag, 0, 1);
        assert_eq!(download(hip, y, 2, theirs), [0x0909_0909, 6]);
    });
}
