//! Streams and captures.

use std::ffi::c_uint;

use crate::bindings::*;
use crate::boundary::{call, give, pointer};
use crate::code::{Code, Result};
use crate::event::Last;
use crate::machine::{Guard, machine};
use crate::stream::{Stream, synchronise};

/// The board's and thread's stream that C means, where the stream's board has not failed.
fn enter(stream: hipStream_t) -> Result<(Guard, usize)> {
    let (state, current) = machine().enter()?;
    let handle = state.stream_of(stream.addr(), current)?;
    state.sound(state.streams.get(handle)?.board)?;
    Ok((state, handle))
}

/// The same where it is not captured: what would wait for it spoils the capture.
fn enter_free(stream: hipStream_t) -> Result<(Guard, usize)> {
    let (mut state, handle) = enter(stream)?;
    let capture = state.streams.get(handle)?.capture;
    if capture.is_some() {
        state.invalidate(capture);
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    Ok((state, handle))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamCreateWithFlags(
    stream: *mut hipStream_t,
    flags: c_uint,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        if stream.is_null() || flags & !hipStreamNonBlocking != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = state.streams.insert(Stream::new(current, flags == 0));
        // SAFETY: the caller's promise.
        unsafe { give(stream, pointer(handle)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamDestroy(stream: hipStream_t) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter()?;
        if stream.is_null() {
            return Err(Code::INVALID_HANDLE);
        }
        let handle = state.stream_of(stream.addr(), current)?;
        let found = state.streams.get(handle)?;
        let (board, capture) = (found.board, found.capture);
        if state.boards[board].default_stream == handle {
            return Err(Code::INVALID_HANDLE);
        }
        state.invalidate(capture);
        state.destroy_stream(handle)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t {
    call(|| {
        let (state, handle) = enter_free(stream)?;
        let board = state.streams.get(handle)?.board;
        synchronise(state, handle)?.sound(board)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamQuery(stream: hipStream_t) -> hipError_t {
    call(|| {
        let (state, handle) = enter_free(stream)?;
        if state.streams.get(handle)?.is_idle() { Ok(()) } else { Err(Code::NOT_READY) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamWaitEvent(
    stream: hipStream_t,
    event: hipEvent_t,
    flags: c_uint,
) -> hipError_t {
    call(|| {
        let (mut state, handle) = enter(stream)?;
        let last = state.events.get(event.addr())?.last.clone();
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let capture = state.streams.get(handle)?.capture;
        match (last, capture) {
            (Last::Never, _) => Ok(()),
            (Last::Captured { capture, nodes }, _) => state.join_capture(handle, capture, &nodes),
            (Last::At(mark), None) => state.wait_for(handle, mark),
            (Last::At(_), capture) => {
                state.invalidate(capture);
                Err(Code::CAPTURE_ISOLATION)
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamBeginCapture(
    stream: hipStream_t,
    mode: hipStreamCaptureMode,
) -> hipError_t {
    call(|| {
        let (mut state, handle) = enter(stream)?;
        state.begin_capture(handle, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamEndCapture(
    stream: hipStream_t,
    graph: *mut hipGraph_t,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter()?;
        if graph.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let handle = state.stream_of(stream.addr(), current)?;
        let ended = state.end_capture(handle);
        // SAFETY: the caller's promise.
        unsafe { give(graph, pointer(*ended.as_ref().unwrap_or(&0)))? };
        ended.map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamIsCapturing(
    stream: hipStream_t,
    status: *mut hipStreamCaptureStatus,
) -> hipError_t {
    call(|| {
        let (state, handle) = enter(stream)?;
        let capture = state.streams.get(handle)?.capture;
        let found = match capture.map(|capture| state.captures.get(capture)) {
            None | Some(Err(_)) => hipStreamCaptureStatusNone,
            Some(Ok(capture)) if capture.is_invalid => hipStreamCaptureStatusInvalidated,
            Some(Ok(_)) => hipStreamCaptureStatusActive,
        };
        // SAFETY: the caller's promise.
        unsafe { give(status, found) }
    })
}
