//! Boards as the driver lists them, before any is opened.

use super::{Driver, Failure, Result, failure::check};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};
use std::ffi::{CStr, c_char};

/// One board.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    driver: Driver,
    handle: CUdevice,
}

impl Board {
    /// Every board, by ordinal.
    ///
    /// # Errors
    /// What the driver says.
    pub fn all(driver: Driver) -> Result<Vec<Board>> {
        let mut count = 0;
        // SAFETY: writes one integer.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
        (0..count).map(|ordinal| Board::of(driver, ordinal)).collect()
    }

    fn of(driver: Driver, ordinal: i32) -> Result<Board> {
        let mut handle = 0;
        // SAFETY: writes one handle; an ordinal that is none is an error code.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut handle, ordinal) })?;
        Ok(Board { driver, handle })
    }

    pub(super) fn handle(self) -> CUdevice {
        self.handle
    }

    /// The driver that lists it.
    pub fn driver(self) -> Driver {
        self.driver
    }

    /// The vendor's name, such as `NVIDIA H200`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn name(self) -> Result<String> {
        let mut name: [c_char; 256] = [0; 256];
        let length = name.len() as i32;
        // SAFETY: the buffer holds `length` bytes.
        let code = unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), length, self.handle) };
        check("cuDeviceGetName", code)?;
        let bytes: Vec<u8> = name.iter().map(|c| *c as u8).collect();
        let text = CStr::from_bytes_until_nul(&bytes);
        let endless = |_| Failure::refused("cuDeviceGetName", "a name without an end".into());
        Ok(text.map_err(endless)?.to_string_lossy().into_owned())
    }

    /// Its memory.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory_bytes(self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: writes one size.
        check("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, self.handle) })?;
        Ok(bytes as u64)
    }

    /// Compute capability, major and minor.
    ///
    /// # Errors
    /// What the driver says.
    pub fn capability(self) -> Result<(i32, i32)> {
        let major = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    /// Shared memory that one block can have.
    ///
    /// # Errors
    /// What the driver says.
    pub fn shared_memory_bytes(self) -> Result<u64> {
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        Ok(self.attribute(attribute)?.max(0) as u64)
    }

    /// How many blocks there is always room for.
    ///
    /// # Errors
    /// What the driver says.
    pub fn multiprocessors(self) -> Result<u64> {
        let count = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(count.max(1) as u64)
    }

    fn attribute(self, attribute: Attribute) -> Result<i32> {
        let mut value = 0;
        // SAFETY: writes one integer.
        let code = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, self.handle) };
        check("cuDeviceGetAttribute", code)?;
        Ok(value)
    }
}
