//! Whether there is a driver that this crate can call.

use super::{Failure, failure::check, library};
use cudarc::driver::sys;
use std::sync::OnceLock;

/// The lowest driver whose functions the bindings name, as the driver counts: 1000 major + 10 minor.
const LOWEST: i32 = 13_000;

/// Every function that this crate calls. The bindings look each up at its first call, and panic.
const FUNCTIONS: &[&str] = &[
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncGetParamInfo",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernelEx",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAlloc_v2",
    "cuMemCreate",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetAllocationGranularity",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemMap",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemcpyAsync",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuTensorMapEncodeTiled",
];

/// The proof that the driver is loaded, new enough, whole and initialised. It stays so for the life of
/// the process.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    version: i32,
}

impl Driver {
    /// Looks once; every later call answers the same.
    ///
    /// # Errors
    /// Why there is no usable driver: part of a sentence for users.
    pub fn open() -> Result<Driver, String> {
        static ONCE: OnceLock<Result<Driver, String>> = OnceLock::new();
        ONCE.get_or_init(Driver::look).clone()
    }

    /// The CUDA version of the driver, as `13.0`.
    pub fn version(self) -> String {
        spelled(self.version)
    }

    /// The release of the driver, as `580.95.05`, which its library bears in its name; `cuda-13.0`
    /// where that is not to be seen.
    pub fn release(self) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        release_in(&maps).unwrap_or_else(|| format!("cuda-{}", self.version()))
    }

    fn look() -> Result<Driver, String> {
        let place = library::find();
        let at = place.map_or_else(|| library::LIBRARY.into(), |path| path.display().to_string());
        // SAFETY: loading runs the initialisers of the library that the loader finds under the driver's
        // name, which is what a user who installed it there asks for.
        if !unsafe { sys::is_culib_present() } {
            return Err(match library::find() {
                Some(_) => format!("the NVIDIA driver {at} does not load"),
                None => format!("there is no NVIDIA driver ({at})"),
            });
        }
        let missing = FUNCTIONS.iter().find(|name| !has(name));
        let version = if has("cuDriverGetVersion") { version() } else { None };
        match (version, missing) {
            (Some(version), _) if version < LOWEST => Err(format!(
                "the NVIDIA driver {at} supports CUDA {}, {} is needed: update the driver",
                spelled(version),
                spelled(LOWEST)
            )),
            (_, Some(name)) => Err(format!("the NVIDIA driver {at} has no {name}")),
            (None, None) => Err(format!("the NVIDIA driver {at} does not tell its version")),
            (Some(version), None) => {
                // SAFETY: no argument but flags, which must be zero.
                let started = check("cuInit", unsafe { sys::cuInit(0) });
                let refused = |f: Failure| format!("the NVIDIA driver {at} does not start: {f}");
                started.map(|()| Driver { version }).map_err(refused)
            }
        }
    }
}

/// Whether the library, which the caller has seen present, has a function.
fn has(name: &str) -> bool {
    // SAFETY: the library is present, so this opens it and does not panic. Only whether the name is there
    // is asked; nothing is called through the pointer.
    unsafe { sys::culib().get::<*const ()>(name.as_bytes()).is_ok() }
}

fn version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: the caller has seen that the function is there; it writes one integer.
    let code = unsafe { sys::cuDriverGetVersion(&mut version) };
    (code == sys::CUresult::CUDA_SUCCESS).then_some(version)
}

fn spelled(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The release in the name of the driver's library among the files that a process has mapped.
fn release_in(maps: &str) -> Option<String> {
    let names = maps.lines().filter_map(|line| line.rsplit('/').next());
    let mut releases = names.filter_map(|name| name.strip_prefix("libcuda.so."));
    let whole = |release: &&str| release.contains('.') && !release.contains(char::is_whitespace);
    releases.find(whole).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_off_the_library_that_is_loaded() {
        let line = |name: &str| format!("7f00-7f01 r-xp 00000000 08:01 99   /usr/lib/{name}\n");
        let maps =
            line("libc.so.6") + &line("libcudart.so.13.0.96") + &line("libcuda.so.580.159.04");
        assert_eq!(release_in(&maps).as_deref(), Some("580.159.04"));
        assert_eq!(release_in(&(line("libcuda.so.1") + &line("libcuda.so.9.1 (deleted)"))), None);
    }
}
