//! Calls that did not succeed.

use std::fmt;

use tandem_hal::Error;

use super::bindings::{
    hipError_t, hipErrorAssert, hipErrorContextIsDestroyed, hipErrorDeinitialized,
    hipErrorECCNotCorrectable, hipErrorIllegalAddress, hipErrorInsufficientDriver,
    hipErrorInvalidDevice, hipErrorInvalidImage, hipErrorInvalidValue, hipErrorLaunchFailure,
    hipErrorLaunchTimeOut, hipErrorMapFailed, hipErrorNoBinaryForGpu, hipErrorNoDevice,
    hipErrorNotInitialized, hipErrorNotSupported, hipErrorOperatingSystem, hipErrorOutOfMemory,
    hipErrorPeerAccessUnsupported, hipErrorPriorLaunchFailure, hipErrorUnknown,
};

/// Result of every fallible call of the driver layer.
pub type Result<T> = std::result::Result<T, Failure>;

/// Codes after which every call on the board answers the same.
const FAULTS: [hipError_t; 9] = [
    hipErrorDeinitialized,
    hipErrorPriorLaunchFailure,
    hipErrorECCNotCorrectable,
    hipErrorIllegalAddress,
    hipErrorLaunchTimeOut,
    hipErrorContextIsDestroyed,
    hipErrorAssert,
    hipErrorLaunchFailure,
    hipErrorUnknown,
];

/// A driver call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// The driver's code.
    pub code: u32,
    /// The driver's words, or ours, and what to do.
    pub meaning: String,
}

impl Failure {
    /// What the driver answered, in its words.
    pub(super) fn of(call: &'static str, code: hipError_t, words: &str) -> Failure {
        let meaning = match remedy(code) {
            Some(remedy) => format!("{words}: {remedy}"),
            None => words.into(),
        };
        Failure { call, code, meaning }
    }

    /// A call that we refuse before the driver would.
    pub(crate) fn refused(call: &'static str, meaning: String) -> Failure {
        Failure { call, code: hipErrorInvalidValue, meaning }
    }

    /// Whether the device faulted: it is of no use any more until it is opened again.
    pub fn is_fault(&self) -> bool {
        FAULTS.contains(&self.code)
    }

    /// Whether memory ran out.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == hipErrorOutOfMemory
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}: {}", self.call, self.code, self.meaning)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(Failure { call, code, meaning }: Failure) -> Error {
        Error::Driver { call, code: code as i32, meaning }
    }
}

/// What a user can do, where it is in a user's hands.
fn remedy(code: hipError_t) -> Option<&'static str> {
    Some(match code {
        hipErrorNoDevice | hipErrorNotInitialized => {
            "load the amdgpu kernel driver, and let this user open /dev/kfd and /dev/dri"
        }
        hipErrorInsufficientDriver | hipErrorNotSupported => {
            "update ROCm and the amdgpu kernel driver"
        }
        hipErrorInvalidDevice => "'tandem doctor' lists the devices",
        hipErrorNoBinaryForGpu | hipErrorInvalidImage => {
            "the kernels of this build are for gfx942 and gfx950"
        }
        hipErrorOutOfMemory => "end what else uses the memory, or ask for less",
        hipErrorMapFailed | hipErrorOperatingSystem => {
            "raise the limit of locked memory ('ulimit -l unlimited')"
        }
        hipErrorPeerAccessUnsupported => "open boards that are linked, or one alone",
        fault if FAULTS.contains(&fault) => "open the device again; the kernel's log may say more",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::bindings::hipErrorStreamCaptureInvalidated;

    #[test]
    fn what_ends_a_device_is_a_fault() {
        let of = |code| Failure::of("hipFree", code, "words");
        for (code, is_fault) in [
            (hipErrorIllegalAddress, true),
            (hipErrorLaunchFailure, true),
            (hipErrorOutOfMemory, false),
            (hipErrorStreamCaptureInvalidated, false),
            (hipErrorInvalidValue, false),
        ] {
            assert_eq!(of(code).is_fault(), is_fault, "{code}");
        }
        assert!(of(hipErrorOutOfMemory).is_out_of_memory());
    }

    #[test]
    fn failures_are_a_line_with_what_to_do() {
        for (code, said) in [
            (hipErrorNoBinaryForGpu, "hipModuleLoadData failed with code 209: words: the kernels"),
            (hipErrorOutOfMemory, "failed with code 2: words: end what else"),
            (hipErrorNoDevice, "/dev/kfd"),
            (hipErrorLaunchFailure, "open the device again"),
            (hipErrorInvalidValue, "failed with code 1: words"),
        ] {
            let line = Failure::of("hipModuleLoadData", code, "words").to_string();
            assert!(line.contains(said) && line.lines().count() == 1, "{line}");
        }
    }
}
