//! Code objects and launches.

use std::ffi::{c_char, c_int, c_uint, c_void};

use tandem_gfxsim::Dispatch;

use crate::bindings::*;
use crate::boundary::{call, give, pointer};
use crate::code::{Code, Result};
use crate::machine::machine;
use crate::module::{Function, decode};
use crate::stream;
use crate::work::Work;

use super::text;

/// Keys of the packed form of arguments.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

/// Arguments that no kernel has.
const MOST_ARGUMENT_BYTES: usize = 1 << 16;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLoadData(
    module: *mut hipModule_t,
    image: *const c_void,
) -> hipError_t {
    call(|| {
        let target = {
            let (state, current) = machine().enter_sound()?;
            state.not_capturing()?;
            state.boards[current].board.target
        };
        if module.is_null() || image.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: HIP demands a whole object.
        let bytes = unsafe { elf(image.cast()) }?;
        let object = decode(bytes, target)?;
        let (mut state, current) = machine().enter_sound()?;
        // SAFETY: the caller's promise.
        unsafe { give(module, pointer(state.load(current, &object))) }
    })
}

/// The bytes of an ELF file, as far as its header says that it goes.
///
/// # Safety
/// An ELF file must be there, or at least 64 bytes of anything else.
unsafe fn elf<'a>(start: *const u8) -> Result<&'a [u8]> {
    // SAFETY: so many are there by the caller's promise.
    let header = unsafe { std::slice::from_raw_parts(start, 64) };
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Err(Code::INVALID_IMAGE);
    }
    let number = |at: usize, bytes: usize| {
        header[at..at + bytes].iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte))
    };
    // The table of sections comes last, as linkers write it.
    let (sections, each, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let end = sections.checked_add(each * count).filter(|end| (64..1 << 30).contains(end));
    let end = end.ok_or(Code::INVALID_IMAGE)?;
    // SAFETY: the file is as long as its header says by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(start, end as usize) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleUnload(module: hipModule_t) -> hipError_t {
    call(|| {
        let (mut state, _) = machine().enter()?;
        let board = state.modules.get(module.addr())?.board;
        state = stream::drain(state, board);
        state.unload(module.addr())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleGetFunction(
    function: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    call(|| {
        let (mut state, _) = machine().enter()?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        if function.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        unsafe { give(function, pointer(state.function(module.addr(), name)?)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleGetGlobal(
    to: *mut *mut c_void,
    bytes: *mut size_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter()?;
        // SAFETY: the caller's promise.
        let (address, size) = state.global(module.addr(), unsafe { text(name) }?)?;
        // SAFETY: the caller's promise.
        unsafe { give(to, pointer(address as usize))? };
        // SAFETY: the caller's promise.
        unsafe { give(bytes, size) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFuncGetAttribute(
    value: *mut c_int,
    attribute: hipFunction_attribute,
    function: hipFunction_t,
) -> hipError_t {
    call(|| {
        let (state, _) = machine().enter()?;
        let function = state.functions.get(function.addr())?;
        let (resources, threads) = function.resources()?;
        let lds_bytes = function.module().object().target().lds_bytes();
        let found = match attribute {
            HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => threads,
            HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => resources.lds_bytes,
            HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => 0,
            HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => resources.scratch_bytes,
            HIP_FUNC_ATTRIBUTE_NUM_REGS => resources.vector_registers,
            HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => lds_bytes - resources.lds_bytes,
            _ => return Err(Code::INVALID_VALUE),
        };
        // SAFETY: the caller's promise.
        unsafe { give(value, found as c_int) }
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // HIP's own
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: hipFunction_t,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_lds_bytes: c_uint,
    stream: hipStream_t,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    call(|| {
        let (mut state, current) = machine().enter_sound()?;
        let stream = state.stream_of(stream.addr(), current)?;
        let function = state.functions.get(function.addr())?.clone();
        if function.board() != state.streams.get(stream)?.board {
            return Err(Code::INVALID_HANDLE);
        }
        // SAFETY: the caller's promise.
        let arguments = unsafe { packed(parameters, extra) }?;
        let [grid, block] = [[grid_x, grid_y, grid_z], [block_x, block_y, block_z]];
        fits(&function, grid, block, dynamic_lds_bytes, &arguments)?;
        let work = Work::Launch { function, grid, block, dynamic_lds_bytes, arguments };
        state.submit_or_capture(stream, work)
    })
}

/// The packed arguments.
///
/// # Safety
/// `extra` must be null or end with its end key, and its buffer be as long as it says.
unsafe fn packed(parameters: *mut *mut c_void, extra: *mut *mut c_void) -> Result<Vec<u8>> {
    if !parameters.is_null() {
        machine().tell("a launch with an array of parameters: only the packed form is simulated");
        return Err(if extra.is_null() { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
    }
    if extra.is_null() {
        return Ok(vec![]);
    }
    let (mut buffer, mut size, mut at) = (std::ptr::null::<u8>(), 0usize, 0);
    // Two pairs and the end; more of them would say the same twice.
    while at < 9 {
        // SAFETY: the end is not reached yet.
        let key = unsafe { extra.add(at).read() }.addr();
        if key == END {
            break;
        }
        // SAFETY: a value follows each key.
        let value = unsafe { extra.add(at + 1).read() };
        match key {
            BUFFER_POINTER => buffer = value.cast(),
            // SAFETY: the value points at a size.
            BUFFER_SIZE if !value.is_null() => size = unsafe { value.cast::<usize>().read() },
            _ => return Err(Code::INVALID_VALUE),
        }
        at += 2;
    }
    if size == 0 {
        return Ok(vec![]);
    }
    if buffer.is_null() || size > MOST_ARGUMENT_BYTES {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the buffer is as long as it says.
    Ok(unsafe { std::slice::from_raw_parts(buffer, size) }.to_vec())
}

/// Whether a launch suits the kernel.
fn fits(
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_lds_bytes: u32,
    arguments: &[u8],
) -> Result<()> {
    let (object, kernel) = (function.module().object(), function.name());
    let taken = object.argument_bytes(kernel).ok_or(Code::NOT_FOUND)?;
    // Whoever packs a structure has its tail's padding too.
    if !(taken..=taken.next_multiple_of(16)).contains(&(arguments.len() as u64)) {
        let given = arguments.len();
        machine().tell(&format!("kernel {kernel}: {given} bytes of arguments, it takes {taken}"));
        return Err(Code::INVALID_VALUE);
    }
    let items = (0..3).map(|axis| u64::from(grid[axis]) * u64::from(block[axis]));
    if items.into_iter().any(|items| items == 0 || items > u64::from(u32::MAX)) {
        return Err(Code::INVALID_CONFIGURATION);
    }
    let lds_bytes = function.resources()?.0.lds_bytes;
    if lds_bytes.saturating_add(dynamic_lds_bytes) > object.target().lds_bytes() {
        return Err(Code::OUT_OF_RESOURCES);
    }
    let module = function.module();
    let dispatch = Dispatch { module, kernel, grid, block, arguments, dynamic_lds_bytes };
    dispatch.check().map_err(|error| {
        machine().tell(&error.to_string());
        Code::INVALID_CONFIGURATION
    })
}
