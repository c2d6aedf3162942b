//! Devices, and errors.

use std::ffi::{c_char, c_int, c_uint};

use crate::bindings::*;
use crate::boundary::{call, give, last, take_last};
use crate::code::{self, Code};
use crate::machine::{machine, set_current};
use crate::stream;

use super::give_text;

/// The release that it passes for: the first of those that keep these functions.
const RELEASE: c_int = 70_000_000;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipInit(flags: c_uint) -> hipError_t {
    call(|| {
        let _there_are_some = machine().enter()?;
        if flags == 0 { Ok(()) } else { Err(Code::INVALID_VALUE) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRuntimeGetVersion(version: *mut c_int) -> hipError_t {
    // SAFETY: the caller's promise.
    call(|| unsafe { give(version, RELEASE) })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(code: hipError_t) -> *const c_char {
    code::words(code).as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(code: hipError_t) -> *const c_char {
    code::name(code).as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> hipError_t {
    take_last()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> hipError_t {
    last()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceCount(count: *mut c_int) -> hipError_t {
    call(|| {
        let found = machine().lock().boards.len();
        // SAFETY: the caller's promise.
        unsafe { give(count, found as c_int)? };
        if found == 0 { Err(Code::NO_DEVICE) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
    call(|| {
        let found = machine().lock().ordinal(ordinal)?;
        // SAFETY: the caller's promise.
        unsafe { give(device, found as hipDevice_t) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetName(
    name: *mut c_char,
    length: c_int,
    device: hipDevice_t,
) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let found = state.boards[state.ordinal(device)?].board.name;
        // SAFETY: the caller's promise.
        unsafe { give_text(name, length, found) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetPCIBusId(
    id: *mut c_char,
    length: c_int,
    device: c_int,
) -> hipError_t {
    call(|| {
        let ordinal = machine().lock().ordinal(device)?;
        // SAFETY: the caller's promise.
        unsafe { give_text(id, length, &format!("0000:{:02x}:00.0", ordinal + 1)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceTotalMem(bytes: *mut size_t, device: hipDevice_t) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let found = state.boards[state.ordinal(device)?].memory_bytes;
        // SAFETY: the caller's promise.
        unsafe { give(bytes, found) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetAttribute(
    value: *mut c_int,
    attribute: hipDeviceAttribute_t,
    device: c_int,
) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let ordinal = state.ordinal(device)?;
        let found = state.boards[ordinal].board.attribute(attribute, ordinal);
        // SAFETY: the caller's promise.
        unsafe { give(value, found.ok_or(Code::INVALID_VALUE)?) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipSetDevice(device: c_int) -> hipError_t {
    call(|| {
        set_current(machine().lock().ordinal(device)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDevice(device: *mut c_int) -> hipError_t {
    call(|| {
        let (_state, current) = machine().enter()?;
        // SAFETY: the caller's promise.
        unsafe { give(device, current as c_int) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceSynchronize() -> hipError_t {
    call(|| {
        let (state, current) = machine().enter()?;
        // Waiting for a stream that is captured is not possible, whatever the capture permits.
        let is_captured =
            state.streams.iter().any(|(_, s)| s.board == current && s.capture.is_some());
        if is_captured {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        stream::drain(state, current).sound(current)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceCanAccessPeer(
    can: *mut c_int,
    device: c_int,
    peer: c_int,
) -> hipError_t {
    call(|| {
        let state = machine().lock();
        let is_other = state.ordinal(device)? != state.ordinal(peer)?;
        // SAFETY: the caller's promise.
        unsafe { give(can, is_other.into()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        let peer = state.ordinal(peer)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if peer == current {
            return Err(Code::INVALID_DEVICE);
        }
        if !state.boards[current].peers.insert(peer) {
            return Err(Code::PEER_ENABLED);
        }
        state.memory_changed();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceDisablePeerAccess(peer: c_int) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        let peer = state.ordinal(peer)?;
        if !state.boards[current].peers.remove(&peer) {
            return Err(Code::PEER_NOT_ENABLED);
        }
        state.memory_changed();
        Ok(())
    })
}
