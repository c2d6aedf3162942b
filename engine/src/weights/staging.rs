//! Buffers that every tensor passes through, kept from one to the next.

use std::sync::Arc;

use tandem_hal::{Alloc, Device, Enc, Place, Stream, View};

use crate::error::Result;

/// A host buffer for bytes just read, and device memory for a weight before it is packed.
#[derive(Default)]
pub struct Staging {
    host: Vec<u8>,
    plain: Option<Arc<Alloc>>,
}

impl Staging {
    /// The host buffer.
    pub fn host(&mut self) -> &mut Vec<u8> {
        &mut self.host
    }

    /// A plain view of the device buffer, which grows to the largest asked for. What the stream
    /// still does with the one before is ordered before what it does with this one.
    ///
    /// # Errors
    /// [`tandem_hal::Error::OutOfMemory`].
    pub fn view(
        &mut self,
        device: &dyn Device,
        on: &dyn Stream,
        enc: Enc,
        shape: &[u64],
    ) -> Result<View> {
        let bytes = View::reserved_bytes(enc, shape);
        let plain = match self.plain.take().filter(|held| held.bytes >= bytes) {
            Some(plain) => plain,
            None => {
                // The smaller one goes back first; nothing may be using it then.
                on.sync()?;
                device.allocate(bytes, Place::Device, "loading.staging")?
            }
        };
        let view = View::dense(&plain, 0, enc, shape)?;
        self.plain = Some(plain);
        Ok(view)
    }
}
