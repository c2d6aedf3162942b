//! Descriptors of the bulk tensor copy engine.

use super::{Argument, Driver, Failure, Result, Span, failure::check};
use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType as Data, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion,
    CUtensorMapSwizzle as Swizzle,
};
use std::mem::MaybeUninit;

/// What the emulator knows its own maps by.
#[cfg(feature = "emu")]
const EMULATED: u32 = 0x7E57_E57E;

/// A box of a two-dimensional tensor of bytes, as the copy engine moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows of the tensor.
    pub rows: u64,
    /// Bytes of a row.
    pub cols: u64,
    /// Bytes from row to row, a multiple of 16.
    pub pitch: u64,
    /// Rows of a box.
    pub box_rows: u32,
    /// Bytes of a row of a box, a multiple of 16.
    pub box_cols: u32,
    /// Whether 16-byte units are swizzled within 128-byte rows of shared memory.
    pub swizzled: bool,
}

/// A tensor map. It holds an address, not the memory.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TensorMap(CUtensorMap);

impl TensorMap {
    /// Describes the tensor that starts where `from` does.
    ///
    /// # Errors
    /// When it passes the end of `from`, or the engine cannot do it.
    pub fn new(driver: Driver, from: &Span, tile: &Tile) -> Result<TensorMap> {
        let last = tile.rows.checked_sub(1).and_then(|r| r.checked_mul(tile.pitch));
        let end = last.and_then(|last| last.checked_add(tile.cols));
        if end.is_none_or(|end| end > from.length() as u64) {
            let why = format!("{tile:?} of {} bytes", from.length());
            return Err(Failure::refused("cuTensorMapEncodeTiled", why));
        }
        TensorMap::at(driver, from.address(), tile)
    }

    /// Describes the tensor at an address of an operand that was checked.
    ///
    /// # Errors
    /// When the engine cannot do it.
    pub(crate) fn at(_driver: Driver, address: u64, tile: &Tile) -> Result<TensorMap> {
        let swizzle = if tile.swizzled {
            Swizzle::CU_TENSOR_MAP_SWIZZLE_128B
        } else {
            Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE
        };
        let (extents, pitches) = ([tile.cols, tile.rows], [tile.pitch]);
        let (sides, steps) = ([tile.box_cols, tile.box_rows], [1u32, 1]);
        let mut map = MaybeUninit::uninit();
        // SAFETY: the driver is there; the arrays have one entry an axis, and one less for the pitches.
        // The address is only written into the map.
        let code = unsafe {
            sys::cuTensorMapEncodeTiled(
                map.as_mut_ptr(),
                Data::CU_TENSOR_MAP_DATA_TYPE_UINT8,
                2,
                address as *mut _,
                extents.as_ptr(),
                pitches.as_ptr(),
                sides.as_ptr(),
                steps.as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        check("cuTensorMapEncodeTiled", code)?;
        // SAFETY: the call above succeeded, so it wrote the map.
        Ok(TensorMap(unsafe { map.assume_init() }))
    }

    /// It, as kernels get it: by value.
    pub fn argument(&self) -> Argument<'_> {
        Argument::Words(&self.0.opaque)
    }

    /// The same for the emulator, in its own form.
    #[cfg(feature = "emu")]
    pub(crate) fn emulated(address: u64, tile: &Tile) -> TensorMap {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut opaque = [0; 16];
        opaque[..4].copy_from_slice(&[address, tile.rows, tile.cols, tile.pitch]);
        opaque[4] = two(tile.box_rows, tile.box_cols);
        opaque[5] = two(u32::from(tile.swizzled), EMULATED);
        TensorMap(CUtensorMap { opaque })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_the_size_of_the_device_headers() {
        let map = TensorMap(CUtensorMap { opaque: [0; 16] });
        assert_eq!(map.argument().place().1, 128);
    }
}
