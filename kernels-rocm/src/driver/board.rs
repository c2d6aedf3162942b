//! Boards as the driver lists them.

use std::ffi::{CStr, c_char};
use std::ptr;

use super::bindings::{
    hipDevice_t, hipDeviceAttributeMultiprocessorCount, hipErrorInvalidImage,
    hipErrorNoBinaryForGpu, hipErrorNoDevice,
};
use super::{Driver, Failure, Result};
use crate::CodeObject;

/// One board.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    driver: Driver,
    ordinal: i32,
    handle: hipDevice_t,
}

impl Board {
    /// Every board, by ordinal; none where the driver finds none.
    ///
    /// # Errors
    /// What the driver says.
    pub fn all(driver: Driver) -> Result<Vec<Board>> {
        let mut count = 0;
        // SAFETY: writes one integer.
        let code = unsafe { (driver.functions().hipGetDeviceCount)(&mut count) };
        if code == hipErrorNoDevice {
            return Ok(vec![]);
        }
        driver.check("hipGetDeviceCount", code)?;
        (0..count).map(|ordinal| Board::of(driver, ordinal)).collect()
    }

    fn of(driver: Driver, ordinal: i32) -> Result<Board> {
        let mut handle = 0;
        // SAFETY: writes one handle; an ordinal that is none is an error code.
        let code = unsafe { (driver.functions().hipDeviceGet)(&mut handle, ordinal) };
        driver.check("hipDeviceGet", code)?;
        Ok(Board { driver, ordinal, handle })
    }

    /// The driver that lists it.
    pub fn driver(self) -> Driver {
        self.driver
    }

    /// Its place among the driver's boards.
    pub(super) fn ordinal(self) -> i32 {
        self.ordinal
    }

    /// The vendor's name, such as `AMD Instinct MI300X`; drivers without the table of names give none.
    ///
    /// # Errors
    /// What the driver says.
    pub fn name(self) -> Result<String> {
        let mut name: [c_char; 256] = [0; 256];
        let length = name.len() as i32;
        let get = self.driver.functions().hipDeviceGetName;
        // SAFETY: the buffer holds `length` bytes.
        let code = unsafe { get(name.as_mut_ptr(), length, self.handle) };
        self.driver.check("hipDeviceGetName", code)?;
        let bytes = name.map(|c| c as u8);
        let text = CStr::from_bytes_until_nul(&bytes).map_err(|_| Failure {
            call: "hipDeviceGetName",
            code,
            meaning: "a name without an end".into(),
        })?;
        Ok(text.to_string_lossy().into_owned())
    }

    /// Its memory.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory_bytes(self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: writes one size.
        let code = unsafe { (self.driver.functions().hipDeviceTotalMem)(&mut bytes, self.handle) };
        self.driver.check("hipDeviceTotalMem", code)?;
        Ok(bytes)
    }

    /// Compute units.
    ///
    /// # Errors
    /// What the driver says.
    pub fn compute_units(self) -> Result<u64> {
        let mut value = 0;
        let get = self.driver.functions().hipDeviceGetAttribute;
        // SAFETY: writes one integer.
        let code = unsafe { get(&mut value, hipDeviceAttributeMultiprocessorCount, self.ordinal) };
        self.driver.check("hipDeviceGetAttribute", code)?;
        Ok(value.max(1) as u64)
    }

    /// Which of the objects, one a target, it runs: its target. The properties that say so changed their
    /// layout between releases; what a board loads did not.
    ///
    /// # Errors
    /// What the driver says, but for objects of other targets.
    pub fn target(self, objects: &[&CodeObject]) -> Result<Option<&'static str>> {
        let hip = self.driver.functions();
        // SAFETY: no memory is involved.
        self.driver.check("hipSetDevice", unsafe { (hip.hipSetDevice)(self.ordinal) })?;
        for object in objects {
            let mut module = ptr::null_mut();
            // SAFETY: a whole object as the compiler wrote it, as the crate's tests hold against its digest;
            // writes one handle.
            let code =
                unsafe { (hip.hipModuleLoadData)(&mut module, object.bytes.as_ptr().cast()) };
            if code == hipErrorNoBinaryForGpu || code == hipErrorInvalidImage {
                continue;
            }
            self.driver.check("hipModuleLoadData", code)?;
            // SAFETY: loaded just now, and nothing runs of it.
            self.driver.check("hipModuleUnload", unsafe { (hip.hipModuleUnload)(module) })?;
            return Ok(Some(object.target));
        }
        Ok(None)
    }
}
