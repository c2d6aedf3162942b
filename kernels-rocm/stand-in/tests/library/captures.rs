//! Captures and graphs.

use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    ON_DEVICE, TO_DEVICE, allocate, alone, argument, call, can_load, download, event, function,
    launch, load, object, ok, pinned, set_word, stream, upload,
};

fn begin(hip: &Hip, stream: hipStream_t) {
    ok!(hip, hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
}

fn end(hip: &Hip, stream: hipStream_t) -> hipGraphExec_t {
    let (mut graph, mut executable) = (null_mut(), null_mut());
    ok!(hip, hipStreamEndCapture(stream, &mut graph));
    ok!(hip, hipGraphInstantiateWithFlags(&mut executable, graph, 0));
    ok!(hip, hipGraphDestroy(graph));
    assert_eq!(call!(hip, hipGraphDestroy(graph)), hipErrorInvalidHandle);
    executable
}

fn status(hip: &Hip, stream: hipStream_t) -> hipStreamCaptureStatus {
    let mut status = 9;
    ok!(hip, hipStreamIsCapturing(stream, &mut status));
    status
}

#[test]
fn what_is_captured_runs_when_it_is_launched() {
    if !can_load() {
        return;
    }
    alone("captures::what_is_captured_runs_when_it_is_launched", &[], |hip| {
        let (own, side) = (stream(hip), stream(hip));
        let module = load(hip, &object("groups", "gfx942"));
        let kernel = function(hip, module, "histogram");
        let x = upload(hip, &[0x0302_0100; 16]);
        let (counts, copy, spare) = (allocate(hip, 1024), allocate(hip, 1024), allocate(hip, 8));
        let (fork, join) = (event(hip, hipEventDisableTiming), event(hip, hipEventDisableTiming));
        ok!(hip, hipMemsetAsync(copy, 0xff, 1024, own));
        ok!(hip, hipDeviceSynchronize());
        begin(hip, own);
        assert_eq!(status(hip, own), hipStreamCaptureStatusActive);
        ok!(hip, hipMemsetAsync(counts, 0, 1024, own));
        ok!(hip, hipEventRecord(fork, own));
        ok!(hip, hipStreamWaitEvent(side, fork, 0));
        assert_eq!(status(hip, side), hipStreamCaptureStatusActive);
        let arguments = [argument(x), argument(counts), 64];
        assert_eq!(launch(hip, kernel, [4, 256], side, &arguments), hipSuccess);
        ok!(hip, hipEventRecord(join, side));
        // A second branch, which may come before the first or behind it.
        ok!(hip, hipMemsetAsync(spare, 2, 1, own));
        ok!(hip, hipStreamWaitEvent(own, join, 0));
        ok!(hip, hipMemcpyAsync(copy, counts, 1024, ON_DEVICE, own));
        assert_eq!(call!(hip, hipEventQuery(fork)), hipErrorCapturedEvent);
        assert_eq!(call!(hip, hipEventSynchronize(fork)), hipErrorCapturedEvent);
        let executable = end(hip, own);
        assert_eq!(status(hip, side), hipStreamCaptureStatusNone);
        ok!(hip, hipStreamSynchronize(own));
        assert_eq!(download(hip, copy, 1, own), [u32::MAX], "nothing has run");
        for _ in 0..5 {
            ok!(hip, hipMemsetAsync(copy, 0xff, 1024, own));
            ok!(hip, hipGraphLaunch(executable, own));
            let found = download(hip, copy, 256, own);
            let total: u32 = found.iter().sum();
            assert_eq!((total, &found[1..4]), (64, &[16, 16, 16][..]));
        }
        ok!(hip, hipGraphExecDestroy(executable));
        assert_eq!(call!(hip, hipGraphLaunch(executable, own)), hipErrorInvalidHandle);
        assert_eq!(call!(hip, hipGraphExecDestroy(executable)), hipErrorInvalidHandle);
    });
}

#[test]
fn launches_of_one_graph_are_in_order() {
    if !can_load() {
        return;
    }
    alone("captures::launches_of_one_graph_are_in_order", &[], |hip| {
        let (own, other) = (stream(hip), stream(hip));
        let module = load(hip, &object("faulty", "gfx942"));
        let kernel = function(hip, module, "hangs");
        let flag = pinned(hip, 1);
        set_word(flag, 0, 0);
        begin(hip, own);
        assert_eq!(launch(hip, kernel, [1, 64], own, &[argument(flag)]), hipSuccess);
        let executable = end(hip, own);
        ok!(hip, hipGraphLaunch(executable, own));
        ok!(hip, hipGraphLaunch(executable, other));
        assert_eq!(call!(hip, hipStreamQuery(other)), hipErrorNotReady);
        set_word(flag, 0, 1);
        ok!(hip, hipStreamSynchronize(other));
        ok!(hip, hipStreamQuery(own));
    });
}

#[test]
fn wrong_captures_are_told() {
    alone("captures::wrong_captures_are_told", &[], |hip| {
        let (own, side) = (stream(hip), stream(hip));
        let (memory, point) = (allocate(hip, 64), event(hip, hipEventDisableTiming));
        let mut graph = null_mut();
        let finish = |stream| call!(hip, hipStreamEndCapture(stream, &mut null_mut()));
        assert_eq!(finish(own), hipErrorIllegalState);
        let default = call!(hip, hipStreamBeginCapture(null_mut(), 2));
        assert_eq!(default, hipErrorStreamCaptureUnsupported);
        assert_eq!(call!(hip, hipStreamBeginCapture(own, 7)), hipErrorInvalidValue);
        begin(hip, own);
        assert_eq!(call!(hip, hipStreamBeginCapture(own, 2)), hipErrorIllegalState);
        // Copies of pageable memory.
        let bytes = [0u8; 8];
        let copy = call!(hip, hipMemcpyAsync(memory, bytes.as_ptr().cast(), 8, TO_DEVICE, own));
        assert_eq!(copy, hipErrorStreamCaptureUnsupported);
        // Work that does not come back.
        ok!(hip, hipEventRecord(point, own));
        ok!(hip, hipStreamWaitEvent(side, point, 0));
        ok!(hip, hipMemsetAsync(memory, 0, 8, side));
        assert_eq!(finish(side), hipErrorStreamCaptureUnmatched);
        assert_eq!(finish(own), hipErrorStreamCaptureUnjoined);
        // Waiting ends the capture.
        begin(hip, own);
        let waited = call!(hip, hipStreamSynchronize(own));
        assert_eq!(waited, hipErrorStreamCaptureUnsupported);
        assert_eq!(status(hip, own), hipStreamCaptureStatusInvalidated);
        let late = call!(hip, hipMemsetAsync(memory, 0, 8, own));
        assert_eq!(late, hipErrorStreamCaptureInvalidated);
        let ended = call!(hip, hipStreamEndCapture(own, &mut graph));
        assert_eq!((ended, graph), (hipErrorStreamCaptureInvalidated, null_mut()));
        // Work of outside.
        ok!(hip, hipEventRecord(point, side));
        begin(hip, own);
        let outside = call!(hip, hipStreamWaitEvent(own, point, 0));
        assert_eq!(outside, hipErrorStreamCaptureIsolation);
        assert_eq!(finish(own), hipErrorStreamCaptureInvalidated);
        // Two captures do not become one.
        begin(hip, own);
        begin(hip, side);
        ok!(hip, hipEventRecord(point, side));
        let merged = call!(hip, hipStreamWaitEvent(own, point, 0));
        assert_eq!(merged, hipErrorStreamCaptureMerge);
        assert_eq!([finish(own), finish(side)], [hipErrorStreamCaptureInvalidated; 2]);
        // What a strict capture forbids.
        ok!(hip, hipStreamBeginCapture(own, hipStreamCaptureModeGlobal));
        let made = call!(hip, hipMalloc(&mut null_mut(), 8));
        assert_eq!(made, hipErrorStreamCaptureUnsupported);
        assert_eq!(call!(hip, hipDeviceSynchronize()), hipErrorStreamCaptureUnsupported);
        ok!(hip, hipMemsetAsync(memory, 0, 8, own));
        let executable = end(hip, own);
        ok!(hip, hipGraphLaunch(executable, own));
        // Graphs within graphs.
        ok!(hip, hipStreamSynchronize(own));
        begin(hip, own);
        assert_eq!(call!(hip, hipGraphLaunch(executable, own)), hipErrorNotSupported);
        let flags = call!(hip, hipGraphInstantiateWithFlags(&mut null_mut(), null_mut(), 1));
        assert_eq!(flags, hipErrorInvalidValue);
    });
}
