//! Memory, copies and fills.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    ON_DEVICE, TO_DEVICE, TO_HOST, allocate, alone, call, download, ok, pinned, set_word, stream,
    upload, word,
};

/// A pointer to another byte.
fn beyond(pointer: *mut c_void, bytes: usize) -> *mut c_void {
    pointer.wrapping_byte_add(bytes)
}

#[test]
fn bytes_arrive() {
    alone("memory::bytes_arrive", &[], |hip| {
        let words: Vec<u32> = (0..700_000).collect();
        let (from, to) = (upload(hip, &words), allocate(hip, 4 * words.len()));
        let own = stream(hip);
        ok!(hip, hipStreamSynchronize(null_mut()));
        let bytes = 4 * words.len() as size_t;
        ok!(hip, hipMemcpyAsync(to, from, bytes, ON_DEVICE, own));
        ok!(hip, hipMemsetAsync(beyond(to, 3), 0xab, 6, own));
        let mut expected = words.clone();
        (expected[0], expected[1]) = (0xab00_0000, 0xabab_abab);
        expected[2] = 0xab;
        assert!(download(hip, to, words.len(), own) == expected);
        // Pinned memory is either side.
        let page = pinned(hip, 4);
        ok!(hip, hipMemcpyAsync(page.cast(), from, 16, TO_HOST, own));
        ok!(hip, hipStreamSynchronize(own));
        assert_eq!([0, 1, 2, 3].map(|at| word(page, at)), [0, 1, 2, 3]);
        set_word(page, 1, 77);
        ok!(hip, hipMemcpyAsync(to, page.cast(), 8, TO_DEVICE, own));
        assert_eq!(download(hip, to, 2, own), [0, 77]);
        let mut device = null_mut();
        ok!(hip, hipHostGetDevicePointer(&mut device, page.cast(), 0));
        assert_eq!(device, page.cast());
        ok!(hip, hipMemcpyAsync(to, from, 0, ON_DEVICE, own));
    });
}

#[test]
fn wrong_copies_are_refused() {
    let told = alone("memory::wrong_copies_are_refused", &[], |hip| {
        let (device, own) = (allocate(hip, 100), stream(hip));
        let mut host = [0u8; 200];
        let host: *mut c_void = host.as_mut_ptr().cast();
        let copy = |to, from, bytes, kind| call!(hip, hipMemcpyAsync(to, from, bytes, kind, own));
        // Over the end.
        assert_eq!(copy(device, host, 101, TO_DEVICE), hipErrorInvalidValue);
        assert_eq!(copy(host, beyond(device, 99), 2, TO_HOST), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipMemsetAsync(device, 0, 101, own)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipMemsetAsync(host, 0, 1, own)), hipErrorInvalidValue);
        // Another way than it says.
        assert_eq!(copy(device, host, 8, TO_HOST), hipErrorInvalidMemcpyDirection);
        assert_eq!(copy(host, device, 8, TO_DEVICE), hipErrorInvalidMemcpyDirection);
        assert_eq!(copy(host, device, 8, ON_DEVICE), hipErrorInvalidMemcpyDirection);
        assert_eq!(copy(host, device, 8, 9), hipErrorInvalidMemcpyDirection);
        assert_eq!(copy(null_mut(), device, 8, TO_HOST), hipErrorInvalidValue);
        // What was freed.
        ok!(hip, hipFree(device));
        assert_eq!(copy(host, device, 8, TO_HOST), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipMemsetAsync(device, 0, 8, own)), hipErrorInvalidValue);
        // None of it broke anything.
        ok!(hip, hipStreamSynchronize(own));
    });
    if let Some(told) = told {
        assert!(told.contains("byte 99 of 100") && told.contains("not allocated"), "{told}");
    }
}

#[test]
fn memory_is_freed_once_and_by_its_own_function() {
    alone("memory::memory_is_freed_once_and_by_its_own_function", &[], |hip| {
        let device = allocate(hip, 100);
        let host: *mut c_void = pinned(hip, 10).cast();
        assert_eq!(call!(hip, hipFree(host)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipHostFree(device)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipFree(beyond(device, 4))), hipErrorInvalidValue);
        ok!(hip, hipFree(device));
        assert_eq!(call!(hip, hipFree(device)), hipErrorInvalidValue);
        ok!(hip, hipHostFree(host));
        assert_eq!(call!(hip, hipHostFree(host)), hipErrorInvalidValue);
        let mut device = null_mut();
        let code = call!(hip, hipHostGetDevicePointer(&mut device, host, 0));
        assert_eq!(code, hipErrorInvalidValue);
        ok!(hip, hipFree(null_mut()));
        ok!(hip, hipHostFree(null_mut()));
        ok!(hip, hipMalloc(&mut device, 0));
        assert!(device.is_null());
        assert_eq!(call!(hip, hipMalloc(null_mut(), 8)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipHostMalloc(&mut device, 8, 0x40)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipExtMallocWithFlags(&mut device, 8, 2)), hipErrorInvalidValue);
        ok!(hip, hipExtMallocWithFlags(&mut device, 8, hipDeviceMallocFinegrained));
        ok!(hip, hipFree(device));
    });
}

#[test]
fn memory_of_the_program_is_registered() {
    alone("memory::memory_of_the_program_is_registered", &[], |hip| {
        let mut words: Vec<u32> = (0..3000).collect();
        // Any address and size will do.
        let start: *mut c_void = beyond(words.as_mut_ptr().cast(), 2);
        let register = |flags| call!(hip, hipHostRegister(start, 11_000, flags));
        assert_eq!(register(0x100), hipErrorInvalidValue);
        assert_eq!(register(hipHostRegisterMapped | hipHostRegisterPortable), hipSuccess);
        assert_eq!(register(0), hipErrorHostMemoryAlreadyRegistered);
        let mut device = null_mut();
        ok!(hip, hipHostGetDevicePointer(&mut device, start, 0));
        let copy = allocate(hip, 11_000);
        ok!(hip, hipMemcpyAsync(copy, device, 11_000, TO_DEVICE, null_mut()));
        let found = download(hip, copy, 2, null_mut());
        assert_eq!(found, [1 << 16, 2 << 16]);
        ok!(hip, hipHostUnregister(start));
        let again = call!(hip, hipHostUnregister(start));
        assert_eq!(again, hipErrorHostMemoryNotRegistered);
        assert_eq!(call!(hip, hipHostRegister(null_mut(), 8, 0)), hipErrorInvalidValue);
        assert_eq!(call!(hip, hipHostRegister(start, 0, 0)), hipErrorInvalidValue);
        let nowhere = std::ptr::without_provenance_mut(0x1000);
        assert_eq!(call!(hip, hipHostRegister(nowhere, 8, 0)), hipErrorInvalidValue);
    });
}
