//! What devices there are, and what they tell of themselves.

use std::ffi::CStr;
use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{allocate, alone, call, meaning, ok};

fn name(hip: &Hip, device: i32) -> String {
    let mut text = [1; 64];
    ok!(hip, hipDeviceGetName(text.as_mut_ptr(), 64, device));
    let bytes = text.map(|c| c as u8);
    CStr::from_bytes_until_nul(&bytes).expect("an end").to_string_lossy().into_owned()
}

fn attribute(hip: &Hip, attribute: hipDeviceAttribute_t, device: i32) -> i32 {
    let mut value = -1;
    ok!(hip, hipDeviceGetAttribute(&mut value, attribute, device));
    value
}

#[test]
fn one_board_where_nothing_is_said() {
    alone("devices::one_board_where_nothing_is_said", &[], |hip| {
        let (mut count, mut version, mut bytes) = (0, 0, 0);
        ok!(hip, hipInit(0));
        assert_eq!(call!(hip, hipInit(1)), hipErrorInvalidValue);
        ok!(hip, hipRuntimeGetVersion(&mut version));
        assert!(version >= 60_000_000);
        ok!(hip, hipGetDeviceCount(&mut count));
        assert_eq!((count, name(hip, 0).as_str()), (1, "simulated AMD Instinct MI300X"));
        ok!(hip, hipDeviceTotalMem(&mut bytes, 0));
        assert!(bytes > 100 << 20);
        assert_eq!(call!(hip, hipGetDeviceCount(null_mut())), hipErrorInvalidValue);
    });
}

#[test]
fn boards_are_those_that_are_named() {
    let settings = [("TANDEM_SIM_DEVICES", "gfx950,MI325X,mi300x"), ("TANDEM_SIM_MEMORY_MIB", "3")];
    alone("devices::boards_are_those_that_are_named", &settings, |hip| {
        let names = [0, 1, 2].map(|device| name(hip, device));
        assert_eq!(
            names,
            [
                "simulated AMD Instinct MI355X",
                "simulated AMD Instinct MI325X",
                "simulated AMD Instinct MI300X"
            ]
        );
        let units = [0, 1].map(|d| attribute(hip, hipDeviceAttributeMultiprocessorCount, d));
        assert_eq!(units, [256, 304]);
        let lds = [0, 1].map(|d| attribute(hip, hipDeviceAttributeMaxSharedMemoryPerBlock, d));
        assert_eq!(lds, [160 << 10, 64 << 10]);
        let mut value = 0;
        let texture = hipDeviceAttributeMaxTexture2DWidth;
        assert_eq!(call!(hip, hipDeviceGetAttribute(&mut value, texture, 0)), hipErrorInvalidValue);
        let mut handle = -1;
        ok!(hip, hipDeviceGet(&mut handle, 2));
        for wrong in [-1, 3] {
            assert_eq!(call!(hip, hipDeviceGet(&mut handle, wrong)), hipErrorInvalidDevice);
            assert_eq!(call!(hip, hipSetDevice(wrong)), hipErrorInvalidDevice);
        }
        let mut short = [1; 4];
        ok!(hip, hipDeviceGetName(short.as_mut_ptr(), 4, 0));
        assert_eq!(short.map(|c| c as u8), *b"sim\0");
        let ids = [0, 1].map(|device| {
            let mut id = [1; 16];
            ok!(hip, hipDeviceGetPCIBusId(id.as_mut_ptr(), 16, device));
            id
        });
        assert!(ids[0] != ids[1]);
    });
}

#[test]
fn an_unknown_word_is_told_and_leaves_no_devices() {
    let settings = [("TANDEM_SIM_DEVICES", "gfx942,H100")];
    let told = alone("devices::an_unknown_word_is_told_and_leaves_no_devices", &settings, |hip| {
        let mut count = -1;
        assert_eq!(call!(hip, hipGetDeviceCount(&mut count)), hipErrorNoDevice);
        assert_eq!(count, 0);
        assert_eq!(call!(hip, hipInit(0)), hipErrorNoDevice);
        assert_eq!(call!(hip, hipSetDevice(0)), hipErrorNoDevice);
        assert_eq!(call!(hip, hipMalloc(&mut null_mut(), 8)), hipErrorNoDevice);
    });
    if let Some(told) = told {
        let lines: Vec<_> = told.lines().filter(|line| line.contains("H100")).collect();
        assert_eq!(lines.len(), 1, "{told}");
    }
}

#[test]
fn codes_have_words() {
    alone("devices::codes_have_words", &[], |hip| {
        for (code, words) in [
            (hipSuccess, "no error"),
            (hipErrorNoDevice, "device"),
            (hipErrorNoBinaryForGpu, "no kernel image"),
            (hipErrorIllegalAddress, "illegal memory access"),
            (hipErrorStreamCaptureUnjoined, "unjoined"),
            (123_456, "unknown"),
        ] {
            assert!(meaning(hip, code).contains(words), "{code}: {}", meaning(hip, code));
        }
    });
}

#[test]
fn peers_are_other_devices() {
    let settings = [("TANDEM_SIM_DEVICES", "MI300X,MI300X")];
    alone("devices::peers_are_other_devices", &settings, |hip| {
        let mut can = -1;
        ok!(hip, hipDeviceCanAccessPeer(&mut can, 0, 1));
        assert_eq!(can, 1);
        ok!(hip, hipDeviceCanAccessPeer(&mut can, 1, 1));
        assert_eq!(can, 0);
        let enable = |peer, flags| call!(hip, hipDeviceEnablePeerAccess(peer, flags));
        assert_eq!(enable(0, 0), hipErrorInvalidDevice);
        assert_eq!(enable(2, 0), hipErrorInvalidDevice);
        assert_eq!(enable(1, 1), hipErrorInvalidValue);
        assert_eq!(enable(1, 0), hipSuccess);
        assert_eq!(enable(1, 0), hipErrorPeerAccessAlreadyEnabled);
    });
}

#[test]
fn memory_has_an_end() {
    let settings = [("TANDEM_SIM_MEMORY_MIB", "1")];
    alone("devices::memory_has_an_end", &settings, |hip| {
        let info = || {
            let (mut free, mut total) = (0, 0);
            ok!(hip, hipMemGetInfo(&mut free, &mut total));
            (free, total)
        };
        assert_eq!(info(), (1 << 20, 1 << 20));
        let mut pointer = null_mut();
        assert_eq!(call!(hip, hipMalloc(&mut pointer, (1 << 20) + 1)), hipErrorOutOfMemory);
        let first = allocate(hip, 1 << 19);
        assert_eq!(info(), (1 << 19, 1 << 20));
        assert_eq!(call!(hip, hipMalloc(&mut pointer, (1 << 19) + 1)), hipErrorOutOfMemory);
        ok!(hip, hipFree(first));
        assert_eq!(info(), (1 << 20, 1 << 20));
        let second = allocate(hip, 1 << 20);
        assert_ne!(first, second, "addresses are given out once");
    });
}
