//! Functions beside those that the backend binds.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    TO_DEVICE, TO_HOST, allocate, alone, argument, call, can_load, library, load, object, ok,
};

/// A function of the library, which is of the type that the caller says.
fn function<T: Copy>(name: &str) -> T {
    // SAFETY: the library is built of this package, and loaded already.
    let library = unsafe { libloading::Library::new(library()) }.expect("the library");
    // SAFETY: the types are those of HIP's header; the library stays loaded.
    *unsafe { library.get::<T>(name.as_bytes()) }.expect("the function")
}

#[test]
fn the_last_error_is_kept_until_it_is_taken() {
    alone("beside::the_last_error_is_kept_until_it_is_taken", &[], |hip| {
        let peek: extern "C" fn() -> hipError_t = function("hipPeekAtLastError");
        let take: extern "C" fn() -> hipError_t = function("hipGetLastError");
        let name: extern "C" fn(hipError_t) -> *const c_char = function("hipGetErrorName");
        assert_eq!(peek(), hipSuccess);
        assert_eq!(call!(hip, hipSetDevice(9)), hipErrorInvalidDevice);
        ok!(hip, hipSetDevice(0));
        assert_eq!([peek(), take(), take()], [hipErrorInvalidDevice, hipErrorInvalidDevice, 0]);
        for (code, expected) in [(0, "hipSuccess"), (700, "hipErrorIllegalAddress")] {
            // SAFETY: a static string.
            let text = unsafe { CStr::from_ptr(name(code)) };
            assert_eq!(text.to_str(), Ok(expected));
        }
    });
}

#[test]
fn calls_that_wait_have_waited() {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, u32) -> hipError_t;
    type Fill = unsafe extern "C" fn(*mut c_void, c_int, usize) -> hipError_t;
    alone("beside::calls_that_wait_have_waited", &[], |hip| {
        let (copy, fill): (Copy, Fill) = (function("hipMemcpy"), function("hipMemset"));
        let memory = allocate(hip, 64);
        let (mut from, mut to) = ([7u8; 64], [0u8; 64]);
        // SAFETY: every side has 64 bytes.
        let codes = unsafe {
            [
                copy(memory, from.as_mut_ptr().cast(), 64, TO_DEVICE),
                fill(memory, 9, 2),
                copy(to.as_mut_ptr().cast(), memory, 64, TO_HOST),
            ]
        };
        assert_eq!(codes, [hipSuccess; 3]);
        assert_eq!((&to[..3], to[63]), (&[9, 9, 7][..], 7));
        // SAFETY: refused before anything is copied.
        let code = unsafe { copy(memory, from.as_mut_ptr().cast(), 65, TO_DEVICE) };
        assert_eq!(code, hipErrorInvalidValue);
    });
}

#[test]
fn the_current_device_and_its_peers_change() {
    let settings = [("TANDEM_SIM_DEVICES", "gfx942,gfx942")];
    alone("beside::the_current_device_and_its_peers_change", &settings, |hip| {
        let current: unsafe extern "C" fn(*mut c_int) -> hipError_t = function("hipGetDevice");
        let disable: unsafe extern "C" fn(c_int) -> hipError_t =
            function("hipDeviceDisablePeerAccess");
        let mut device = -1;
        ok!(hip, hipSetDevice(1));
        // SAFETY: writes one number.
        assert_eq!((unsafe { current(&mut device) }, device), (hipSuccess, 1));
        // SAFETY: takes a number.
        assert_eq!(unsafe { disable(0) }, hipErrorPeerAccessNotEnabled);
        ok!(hip, hipDeviceEnablePeerAccess(0, 0));
        // SAFETY: takes a number.
        assert_eq!(unsafe { disable(0) }, hipSuccess);
        ok!(hip, hipDeviceEnablePeerAccess(0, 0));
    });
}

#[test]
fn symbols_of_a_module_have_addresses() {
    if !can_load() {
        return;
    }
    type Global = unsafe extern "C" fn(
        *mut *mut c_void,
        *mut usize,
        hipModule_t,
        *const c_char,
    ) -> hipError_t;
    alone("beside::symbols_of_a_module_have_addresses", &[], |hip| {
        let global: Global = function("hipModuleGetGlobal");
        let module = load(hip, &object("groups", "gfx942"));
        let (mut address, mut bytes) = (null_mut(), 0);
        // SAFETY: writes an address and a size; the name ends with a zero.
        let mut find = |name: &CStr| unsafe {
            let code = global(&mut address, &mut bytes, module, name.as_ptr());
            (code, argument(address) != 0, bytes)
        };
        assert_eq!(find(c"nothing").0, hipErrorNotFound);
        // A kernel's descriptor is one.
        assert_eq!(find(c"histogram.kd"), (hipSuccess, true, 64));
    });
}
