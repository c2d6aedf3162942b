//! Numbers back from a device.

use crate::error::Result;
use tandem_hal::{Stream, View, num};

/// The integers of a dense view.
pub(crate) fn i32(view: &View, on: &dyn Stream) -> Result<Vec<i32>> {
    Ok(words(&on.read(view)?).map(i32::from_le_bytes).collect())
}

/// The numbers of a dense view.
pub(crate) fn f32(view: &View, on: &dyn Stream) -> Result<Vec<f32>> {
    Ok(words(&on.read(view)?).map(f32::from_le_bytes).collect())
}

/// The numbers of a dense view of bf16.
pub(crate) fn bf16(view: &View, on: &dyn Stream) -> Result<Vec<f32>> {
    let bytes = on.read(view)?;
    let halves = bytes.as_chunks::<2>().0.iter();
    Ok(halves.map(|half| num::bf16::to_f32(u16::from_le_bytes(*half))).collect())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> + '_ {
    bytes.as_chunks().0.iter().copied()
}
