//! Graphs.

use std::ffi::c_ulonglong;

use crate::bindings::*;
use crate::boundary::{call, give, pointer};
use crate::code::Code;
use crate::machine::machine;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphInstantiateWithFlags(
    executable: *mut hipGraphExec_t,
    graph: hipGraph_t,
    flags: c_ulonglong,
) -> hipError_t {
    call(|| {
        let (mut state, _) = machine().enter_sound()?;
        if executable.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        unsafe { give(executable, pointer(state.instantiate(graph.addr())?)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphLaunch(
    executable: hipGraphExec_t,
    stream: hipStream_t,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        let stream = state.stream_of(stream.addr(), current)?;
        if state.streams.get(stream)?.capture.is_some() {
            machine()
                .tell("a graph is launched in a capture: graphs within graphs are not simulated");
            return Err(Code::NOT_SUPPORTED);
        }
        state.launch_graph(executable.addr(), stream)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t {
    call(|| machine().lock().graphs.remove(graph.addr()).map(|_| ()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphExecDestroy(executable: hipGraphExec_t) -> hipError_t {
    call(|| machine().lock().executables.remove(executable.addr()).map(|_| ()))
}
