//! Calls that did not succeed.

use cudarc::driver::sys::{self, CUresult};
use std::{ffi::CStr, fmt, ptr};
use tandem_hal::Error;

/// Result of every fallible call of the driver layer.
pub type Result<T> = std::result::Result<T, Failure>;

/// A driver call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// The driver's code.
    pub code: i32,
    /// The driver's words, or ours.
    pub meaning: String,
    fault: bool,
}

impl Failure {
    /// A call that we refuse before the driver would.
    pub(crate) fn refused(call: &'static str, meaning: String) -> Failure {
        let code = CUresult::CUDA_ERROR_INVALID_VALUE as i32;
        Failure { call, code, meaning, fault: false }
    }

    /// Whether the device faulted: the context is of no use any more.
    pub fn is_fault(&self) -> bool {
        self.fault
    }

    /// Whether memory ran out.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as i32
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}: {}", self.call, self.code, self.meaning)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(Failure { call, code, meaning, .. }: Failure) -> Error {
        Error::Driver { call, code, meaning }
    }
}

/// Codes after which every call of the context answers the same.
fn is_fault(code: CUresult) -> bool {
    use CUresult::{
        CUDA_ERROR_ASSERT, CUDA_ERROR_CONTAINED, CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_TENSOR_MEMORY_LEAK, CUDA_ERROR_UNKNOWN,
    };
    matches!(
        code,
        CUDA_ERROR_ASSERT
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUDA_ERROR_UNKNOWN
    )
}

/// The outcome of `call`. Only code that holds a [`super::Driver`], or is looking for one, has a code to
/// check, so the driver is there to name it.
pub(super) fn check(call: &'static str, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Failure { call, code: code as i32, meaning: meaning(code), fault: is_fault(code) })
}

fn meaning(code: CUresult) -> String {
    let mut text = ptr::null();
    // SAFETY: the function writes a pointer to a static string, or null for a code it does not know.
    let named = unsafe { sys::cuGetErrorString(code, &mut text) };
    if named != CUresult::CUDA_SUCCESS || text.is_null() {
        return "the driver has no words for it".into();
    }
    // SAFETY: not null, and the driver's strings end with a zero and live as long as the library.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_context_is_a_fault() {
        assert!(is_fault(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
        assert!(!is_fault(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert!(!is_fault(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    }
}
