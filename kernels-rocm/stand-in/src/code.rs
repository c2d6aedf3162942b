//! Error codes, and their words.

use std::ffi::CStr;

use crate::bindings::*;

/// An error code of HIP that is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) hipError_t);

/// What a call gives.
pub(crate) type Result<T> = std::result::Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $code:ident, $text:literal;)*) => {
        impl Code {
            $(pub(crate) const $name: Code = Code($code);)*
        }

        /// The words for a code.
        pub(crate) fn words(code: hipError_t) -> &'static CStr {
            match code {
                0 => c"no error",
                $($code => $text,)*
                _ => c"unknown error",
            }
        }

        /// The name of a code.
        pub(crate) fn name(code: hipError_t) -> &'static CStr {
            const NAMES: &[(hipError_t, &str)] =
                &[(0, "hipSuccess\0"), $(($code, concat!(stringify!($code), "\0")),)*];
            let name = NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
            let bytes = name.unwrap_or("hipErrorUnknown\0").as_bytes();
            CStr::from_bytes_with_nul(bytes).unwrap_or(c"hipErrorUnknown")
        }
    };
}

codes! {
    INVALID_VALUE = hipErrorInvalidValue, c"invalid argument";
    OUT_OF_MEMORY = hipErrorOutOfMemory, c"out of memory";
    INVALID_CONFIGURATION = hipErrorInvalidConfiguration, c"invalid configuration argument";
    INVALID_DIRECTION = hipErrorInvalidMemcpyDirection, c"invalid copy direction for memcpy";
    NO_DEVICE = hipErrorNoDevice, c"no ROCm-capable device is detected";
    INVALID_DEVICE = hipErrorInvalidDevice, c"invalid device ordinal";
    INVALID_IMAGE = hipErrorInvalidImage, c"device kernel image is invalid";
    NO_BINARY = hipErrorNoBinaryForGpu, c"no kernel image is available for execution on the device";
    INIT_FAILED = hipErrorSharedObjectInitFailed, c"shared object initialization failed";
    INVALID_HANDLE = hipErrorInvalidHandle, c"invalid resource handle";
    ILLEGAL_STATE = hipErrorIllegalState, c"the operation cannot be performed in the present state";
    NOT_FOUND = hipErrorNotFound, c"named symbol not found";
    NOT_READY = hipErrorNotReady, c"device not ready";
    ILLEGAL_ADDRESS = hipErrorIllegalAddress, c"an illegal memory access was encountered";
    OUT_OF_RESOURCES = hipErrorLaunchOutOfResources, c"out of resources";
    TIME_OUT = hipErrorLaunchTimeOut, c"the launch timed out and was terminated";
    PEER_ENABLED = hipErrorPeerAccessAlreadyEnabled, c"peer access is already enabled";
    PEER_NOT_ENABLED = hipErrorPeerAccessNotEnabled, c"peer access has not been enabled";
    REGISTERED = hipErrorHostMemoryAlreadyRegistered, c"part or all of the requested memory range is already mapped";
    NOT_REGISTERED = hipErrorHostMemoryNotRegistered, c"pointer does not correspond to a registered memory region";
    LAUNCH_FAILURE = hipErrorLaunchFailure, c"unspecified launch failure";
    NOT_SUPPORTED = hipErrorNotSupported, c"operation not supported";
    CAPTURE_UNSUPPORTED = hipErrorStreamCaptureUnsupported, c"operation not permitted when stream is capturing";
    CAPTURE_INVALIDATED = hipErrorStreamCaptureInvalidated, c"operation failed due to a previous error during capture";
    CAPTURE_MERGE = hipErrorStreamCaptureMerge, c"operation would result in a merge of separate capture sequences";
    CAPTURE_UNMATCHED = hipErrorStreamCaptureUnmatched, c"capture was not ended in the same stream as it began";
    CAPTURE_UNJOINED = hipErrorStreamCaptureUnjoined, c"capturing stream has unjoined work";
    CAPTURE_ISOLATION = hipErrorStreamCaptureIsolation, c"dependency created on uncaptured work in another stream";
    CAPTURED_EVENT = hipErrorCapturedEvent, c"operation not permitted on an event last recorded in a capturing stream";
    CAPTURE_THREAD = hipErrorStreamCaptureWrongThread, c"attempt to terminate a thread-local capture sequence from another thread";
    UNKNOWN = hipErrorUnknown, c"unknown error";
}
