//! Memory, copies and fills.

use std::ffi::{c_int, c_uint, c_void};

use crate::allocation::{self, Kind};
use crate::bindings::*;
use crate::boundary::{call, give};
use crate::code::{Code, Result};
use crate::machine::{Guard, State, machine};
use crate::stream;
use crate::work::{Order, Place, Work};

/// Directions of copies, as the header numbers them.
const HOST_TO_HOST: hipMemcpyKind = 0;
const HOST_TO_DEVICE: hipMemcpyKind = 1;
const DEVICE_TO_HOST: hipMemcpyKind = 2;
const DEVICE_TO_DEVICE: hipMemcpyKind = 3;
const DEFAULT: hipMemcpyKind = 4;

/// Addresses from here on are never the program's own.
const FIRST_OF_DEVICES: u64 = 1 << 47;

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMalloc(to: *mut *mut c_void, bytes: size_t) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        state.not_capturing()?;
        if to.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let base = state.allocate(current, bytes)?;
        // SAFETY: the caller's promise.
        unsafe { give(to, std::ptr::without_provenance_mut(base as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipExtMallocWithFlags(
    to: *mut *mut c_void,
    bytes: size_t,
    flags: c_uint,
) -> hipError_t {
    if flags > hipDeviceMallocFinegrained {
        return call(|| Err(Code::INVALID_VALUE));
    }
    // SAFETY: passed on. All memory here is as coherent as fine-grained memory is.
    unsafe { hipMalloc(to, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFree(pointer: *mut c_void) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter()?;
        state.not_capturing()?;
        if pointer.is_null() {
            return Ok(());
        }
        allocation::free(state, address(pointer), Kind::Device, Code::INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemGetInfo(free: *mut size_t, total: *mut size_t) -> hipError_t {
    call(|| {
        let (state, current) = machine().enter_sound()?;
        let whole = state.boards[current].memory_bytes;
        // SAFETY: the caller's promise.
        unsafe { give(free, whole - state.allocations.used_bytes(current))? };
        // SAFETY: as above.
        unsafe { give(total, whole) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostMalloc(
    to: *mut *mut c_void,
    bytes: size_t,
    flags: c_uint,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        state.not_capturing()?;
        if to.is_null() || flags & !(hipHostMallocPortable | hipHostMallocMapped) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let base = state.allocate_pinned(current, bytes)?;
        // SAFETY: the caller's promise. The address is that of pages whose provenance is exposed.
        unsafe { give(to, std::ptr::with_exposed_provenance_mut(base as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostFree(pointer: *mut c_void) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter()?;
        state.not_capturing()?;
        if pointer.is_null() {
            return Ok(());
        }
        allocation::free(state, address(pointer), Kind::Pinned, Code::INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostRegister(
    pointer: *mut c_void,
    bytes: size_t,
    flags: c_uint,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        if flags & !(hipHostRegisterPortable | hipHostRegisterMapped) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: HIP demands that the memory stays until it is unregistered, which waits for what is in flight.
        unsafe { state.register(current, address(pointer), bytes) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostUnregister(pointer: *mut c_void) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter()?;
        allocation::free(state, address(pointer), Kind::Registered, Code::NOT_REGISTERED)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipHostGetDevicePointer(
    to: *mut *mut c_void,
    pointer: *mut c_void,
    flags: c_uint,
) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter_sound()?;
        let kind = state.kind_at(address(pointer), 1);
        if flags != 0 || !matches!(kind, Some(Kind::Pinned | Kind::Registered)) {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        unsafe { give(to, pointer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: size_t,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    call(|| {
        let (state, current) = machine().enter_sound()?;
        // SAFETY: the caller's promise.
        unsafe { copy(state, current, [address(to), address(from)], bytes, kind, stream.addr()) }
            .map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: size_t,
    kind: hipMemcpyKind,
) -> hipError_t {
    call(|| {
        let (state, current) = machine().enter_sound()?;
        state.not_capturing()?;
        let default = state.boards[current].default_stream;
        // SAFETY: the caller's promise.
        let state = unsafe { copy(state, current, [address(to), address(from)], bytes, kind, 0) }?;
        stream::synchronise(state, default)?.sound(current)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemsetAsync(
    to: *mut c_void,
    value: c_int,
    bytes: size_t,
    stream: hipStream_t,
) -> hipError_t {
    call(|| {
        let (state, current) = machine().enter_sound()?;
        fill(state, current, address(to), value as u8, bytes, stream.addr()).map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemset(to: *mut c_void, value: c_int, bytes: size_t) -> hipError_t {
    call(|| {
        let (state, current) = machine().enter_sound()?;
        state.not_capturing()?;
        let default = state.boards[current].default_stream;
        let state = fill(state, current, address(to), value as u8, bytes, 0)?;
        stream::synchronise(state, default)?.sound(current)
    })
}

impl State {
    /// What kind of memory has so many bytes from an address, all in one region.
    fn kind_at(&self, address: u64, bytes: u64) -> Option<Kind> {
        let (base, size) = self.memory.extent(address)?;
        (bytes <= size - (address - base)).then(|| self.allocations.kind(base)).flatten()
    }

    /// A side of a copy: what kernels see, or none where it is the program's own.
    fn side(&self, address: u64, bytes: u64) -> Result<Option<Kind>> {
        if let Some(kind) = self.kind_at(address, bytes) {
            return Ok(Some(kind));
        }
        let what = match self.memory.extent(address) {
            Some((base, size)) => format!("byte {} of {size}", address - base),
            None if address >= FIRST_OF_DEVICES => "memory that is not allocated".into(),
            None => return Ok(None),
        };
        machine().tell(&format!("a copy or fill of {bytes} bytes at {address:#x}, {what}"));
        Err(Code::INVALID_VALUE)
    }

    /// Captures work, or does it.
    pub(super) fn submit_or_capture(&mut self, stream: usize, work: Work) -> Result<()> {
        let found = self.streams.get(stream)?;
        if found.capture.is_some() {
            return self.capture(stream, work);
        }
        let board = found.board;
        self.sound(board)?;
        let launch = match work {
            Work::Launch { .. } => self.number_launches(1),
            _ => 0,
        };
        let (scene, schedule) = (self.scene(board), machine().schedule(launch));
        self.submit(stream, vec![Order { work: work.into(), scene, schedule }])
    }
}

/// Whether a copy goes where its direction says. Pinned memory passes for either side.
fn has_direction(to: Option<Kind>, from: Option<Kind>, kind: hipMemcpyKind) -> Result<()> {
    let is_device = |kind| matches!(kind, Some(Kind::Device | Kind::Code));
    let suits = match kind {
        HOST_TO_HOST => !is_device(to) && !is_device(from),
        HOST_TO_DEVICE => to.is_some() && !is_device(from),
        DEVICE_TO_HOST => !is_device(to) && from.is_some(),
        DEVICE_TO_DEVICE => to.is_some() && from.is_some(),
        DEFAULT => true,
        _ => false,
    };
    if suits { Ok(()) } else { Err(Code::INVALID_DIRECTION) }
}

/// Copies. From pageable memory the bytes are taken before this returns; to pageable memory they are there.
///
/// # Safety
/// Of addresses of the program's own, `bytes` bytes must be readable or writable.
unsafe fn copy(
    mut state: Guard,
    current: usize,
    [to, from]: [u64; 2],
    bytes: u64,
    kind: hipMemcpyKind,
    stream: usize,
) -> Result<Guard> {
    let stream = state.stream_of(stream, current)?;
    if bytes == 0 {
        return Ok(state);
    }
    if to == 0 || from == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let sides = [state.side(to, bytes)?, state.side(from, bytes)?];
    has_direction(sides[0], sides[1], kind)?;
    let is_captured = state.streams.get(stream)?.capture.is_some();
    if is_captured && sides.contains(&None) {
        machine().tell(
            "a copy of pageable memory in a capture: what a replay finds there is nobody's promise",
        );
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    let source = match sides[1] {
        Some(_) => Place::Memory(from),
        None => {
            let start: *const u8 = std::ptr::with_exposed_provenance(from as usize);
            // SAFETY: so many bytes may be read there by the caller's promise.
            Place::Bytes(unsafe { std::slice::from_raw_parts(start, bytes as usize) }.to_vec())
        }
    };
    let (target, waits) = match sides[0] {
        Some(_) => (Place::Memory(to), false),
        None => (Place::Host(to), true),
    };
    state.submit_or_capture(stream, Work::Copy { to: target, from: source, bytes })?;
    if waits {
        let board = state.streams.get(stream)?.board;
        state = stream::synchronise(state, stream)?;
        state.sound(board)?;
    }
    Ok(state)
}

fn fill(
    mut state: Guard,
    current: usize,
    to: u64,
    value: u8,
    bytes: u64,
    stream: usize,
) -> Result<Guard> {
    let stream = state.stream_of(stream, current)?;
    if bytes == 0 {
        return Ok(state);
    }
    if state.side(to, bytes)?.is_none() {
        return Err(Code::INVALID_VALUE);
    }
    state.submit_or_capture(stream, Work::Fill { to, value, bytes })?;
    Ok(state)
}
