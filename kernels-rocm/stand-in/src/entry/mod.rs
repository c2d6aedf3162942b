//! The functions that C calls, under HIP's names and with its types. Every pointer that they are given is null, or
//! points at what HIP's manual says, which is what each of them is unsafe about.

#![allow(non_snake_case)]

mod device;
mod event;
mod graph;
mod memory;
mod module;
mod stream;

use std::ffi::{CStr, c_char};

use crate::code::{Code, Result};

/// A string of C's.
///
/// # Safety
/// `text` must be null, or end with a zero and stay as it is meanwhile.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and ends with a zero by the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Code::INVALID_VALUE)
}

/// Writes a string of C's, as much of it as fits.
///
/// # Safety
/// `to` must be null or have room for `length` bytes.
unsafe fn give_text(to: *mut c_char, length: i32, text: &str) -> Result<()> {
    let room = usize::try_from(length).unwrap_or(0);
    if to.is_null() || room == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = &text.as_bytes()[..text.len().min(room - 1)];
    for (at, byte) in bytes.iter().chain(&[0]).enumerate() {
        // SAFETY: at most `room` bytes are written, and there is room for them by the caller's promise.
        unsafe { to.add(at).write(*byte as c_char) };
    }
    Ok(())
}
