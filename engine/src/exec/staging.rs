//! Host lists on their way to a device: one buffer, one copy.

use crate::error::{Error, Result};
use std::sync::Arc;
use tandem_hal::{Alloc, Device, Enc, Place, Stream, View};

/// Lists start at multiples of this many bytes, as views of an arena do.
const ALIGN: usize = 256;

/// A device buffer made once, and the bytes that are to be in it.
///
/// Equal sequences of list sizes lie at equal addresses, so a step captured once finds its lists
/// again.
#[derive(Debug)]
pub(crate) struct Staging {
    alloc: Arc<Alloc>,
    bytes: Vec<u8>,
}

impl Staging {
    /// Room for lists of these many elements of four bytes, one after another.
    pub(crate) fn new(
        device: &dyn Device,
        purpose: &str,
        elements: impl IntoIterator<Item = u64>,
    ) -> Result<Self> {
        let bytes = elements.into_iter().map(|n| (n * 4).next_multiple_of(ALIGN as u64)).sum();
        let alloc = device.allocate(bytes, Place::Device, purpose)?;
        Ok(Self { alloc, bytes: Vec::with_capacity(bytes as usize) })
    }

    /// Forgets all lists.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A list of integers, and where it will lie.
    pub(crate) fn i32(&mut self, list: &[i32], shape: &[u64]) -> Result<View> {
        self.place(list.iter().map(|value| value.to_le_bytes()), Enc::I32, shape)
    }

    /// A list of bits, 32 a word, and where it will lie.
    pub(crate) fn u32(&mut self, list: &[u32], shape: &[u64]) -> Result<View> {
        self.place(list.iter().map(|value| value.to_le_bytes()), Enc::U32, shape)
    }

    /// A list of numbers, and where it will lie.
    pub(crate) fn f32(&mut self, list: &[f32], shape: &[u64]) -> Result<View> {
        self.place(list.iter().map(|value| value.to_le_bytes()), Enc::F32, shape)
    }

    fn place(
        &mut self,
        list: impl ExactSizeIterator<Item = [u8; 4]>,
        enc: Enc,
        shape: &[u64],
    ) -> Result<View> {
        let elements: u64 = shape.iter().product();
        if elements != list.len() as u64 {
            let invariant = format!("a list of {} for shape {shape:?}", list.len());
            return Err(Error::Internal { invariant });
        }
        let at = self.bytes.len().next_multiple_of(ALIGN);
        let view = View::dense(&self.alloc, at as u64, enc, shape)?;
        self.bytes.resize(at, 0);
        self.bytes.extend(list.flatten());
        Ok(view)
    }

    /// Copies all lists to the device.
    pub(crate) fn flush(&self, on: &dyn Stream) -> Result<()> {
        let bytes = self.bytes.len() as u64;
        if bytes > 0 {
            on.write(&View::dense(&self.alloc, 0, Enc::U8, &[bytes])?, &self.bytes)?;
        }
        Ok(())
    }
}
