//! Where C calls in: no panic gets out, and codes are remembered.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bindings::{hipError_t, hipErrorNotReady, hipSuccess};
use crate::code::{Code, Result};
use crate::machine::machine;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// Does a call's work; its code.
pub(crate) fn call(work: impl FnOnce() -> Result<()>) -> hipError_t {
    // What a panic leaves half done stays behind locks that are entered again; nothing of it is memory of C's.
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        machine().tell("the stand-in itself is broken, see above");
        Err(Code::UNKNOWN)
    });
    let code = outcome.err().map_or(hipSuccess, |Code(code)| code);
    if code != hipSuccess && code != hipErrorNotReady {
        LAST.set(code);
    }
    code
}

/// The last code of this thread that was not success.
pub(crate) fn last() -> hipError_t {
    LAST.get()
}

/// The same, and forgets it.
pub(crate) fn take_last() -> hipError_t {
    LAST.replace(hipSuccess)
}

/// Writes a result.
///
/// # Safety
/// `to` must be null or point at what may be written.
pub(crate) unsafe fn give<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and writable by the caller's promise; C gives no alignment that Rust would need.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// A handle as a pointer of C's.
pub(crate) fn pointer<T>(handle: usize) -> *mut T {
    std::ptr::without_provenance_mut(handle)
}
