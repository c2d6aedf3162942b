//! Events.

use std::ffi::c_uint;

use crate::bindings::*;
use crate::boundary::{call, give, pointer};
use crate::code::{Code, Result};
use crate::event::{Event, Last, Mark};
use crate::machine::{State, machine};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventCreateWithFlags(
    event: *mut hipEvent_t,
    flags: c_uint,
) -> hipError_t {
    /// Waits by sleeping, which is what all waits here do.
    const BLOCKING_SYNC: c_uint = 1;
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        if event.is_null() || flags & !(hipEventDisableTiming | BLOCKING_SYNC) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let is_timed = flags & hipEventDisableTiming == 0;
        let handle = state.events.insert(Event { board: current, is_timed, last: Last::Never });
        // SAFETY: the caller's promise.
        unsafe { give(event, pointer(handle)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventDestroy(event: hipEvent_t) -> hipError_t {
    call(|| machine().lock().events.remove(event.addr()).map(|_| ()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter()?;
        let handle = state.stream_of(stream.addr(), current)?;
        let found = state.streams.get(handle)?;
        let (board, capture) = (found.board, found.capture);
        if state.events.get(event.addr())?.board != board {
            return Err(Code::INVALID_HANDLE);
        }
        state.sound(board)?;
        let last = match capture {
            Some(capture) => state.captured_front(handle, capture)?,
            None => Last::At(state.mark(handle)?),
        };
        state.events.get_mut(event.addr())?.last = last;
        Ok(())
    })
}

impl State {
    /// What a program asks of an event: its point, or none where it was never recorded.
    fn point(&self, event: hipEvent_t) -> Result<Option<Mark>> {
        let found = self.events.get(event.addr())?;
        match &found.last {
            Last::Never => Ok(None),
            Last::At(mark) => Ok(Some(mark.clone())),
            Last::Captured { .. } => Err(Code::CAPTURED_EVENT),
        }
    }

    /// An error of the event's board.
    fn outcome(&self, event: hipEvent_t) -> Result<()> {
        self.sound(self.events.get(event.addr())?.board)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventQuery(event: hipEvent_t) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let is_passed = state.point(event)?.is_none_or(|mark| mark.get().is_some());
        if is_passed { state.outcome(event) } else { Err(Code::NOT_READY) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventSynchronize(event: hipEvent_t) -> hipError_t {
    call(|| {
        let mut state = machine().lock();
        let Some(mark) = state.point(event)? else { return state.outcome(event) };
        while mark.get().is_none() {
            state = machine().wait(state);
        }
        state.outcome(event)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipEventElapsedTime(
    milliseconds: *mut f32,
    start: hipEvent_t,
    stop: hipEvent_t,
) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let mut times = vec![];
        for event in [start, stop] {
            let is_timed = state.events.get(event.addr())?.is_timed;
            let mark = state.point(event)?.filter(|_| is_timed).ok_or(Code::INVALID_HANDLE)?;
            times.push(*mark.get().ok_or(Code::NOT_READY)?);
        }
        let (start_to_stop, stop_to_start) = (
            times[1].saturating_duration_since(times[0]),
            times[0].saturating_duration_since(times[1]),
        );
        let elapsed = (start_to_stop.as_secs_f64() - stop_to_start.as_secs_f64()) * 1e3;
        // SAFETY: the caller's promise.
        unsafe { give(milliseconds, elapsed as f32) }
    })
}
