//! One reservation for everything a module holds, sized by asking first.

use tandem_hal::{Arena, Class, Device, Enc, Layout, View};

use crate::error::Result;

/// Where views are taken from: the first pass over a module adds up what it takes, the second
/// carves it from a reservation of just that size.
pub struct Room<'a> {
    device: &'a dyn Device,
    arena: Option<Arena>,
    bytes: u64,
}

impl<'a> Room<'a> {
    /// Builds something in one reservation for `purpose`. `build` runs twice and must take the same
    /// views both times; the first time they are absent ones.
    ///
    /// # Errors
    /// What `build` returns, or [`tandem_hal::Error::OutOfMemory`].
    pub fn reserve<T>(
        device: &'a dyn Device,
        purpose: &str,
        build: impl Fn(&mut Room<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut measured = Room::measuring(device);
        build(&mut measured)?;
        build(&mut measured.carving(purpose)?)
    }

    /// The first pass.
    pub fn measuring(device: &'a dyn Device) -> Self {
        Room { device, arena: None, bytes: 0 }
    }

    /// The second pass: a reservation of what this one added up to.
    ///
    /// # Errors
    /// [`tandem_hal::Error::OutOfMemory`].
    pub fn carving(&self, purpose: &str) -> Result<Self> {
        let arena = Some(Arena::new(self.device, self.bytes, purpose)?);
        Ok(Room { device: self.device, arena, bytes: self.bytes })
    }

    /// The device.
    pub fn device(&self) -> &'a dyn Device {
        self.device
    }

    /// Bytes added up by the first pass.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A dense tensor.
    ///
    /// # Errors
    /// When the second pass takes more than the first.
    pub fn view(&mut self, enc: Enc, shape: &[u64]) -> Result<View> {
        match &mut self.arena {
            Some(arena) => Ok(arena.view(enc, shape)?),
            None => {
                self.bytes = self.bytes.saturating_add(View::reserved_bytes(enc, shape));
                Ok(View::absent(enc))
            }
        }
    }

    /// A weight in the layout that the device keeps it in; `[parts, n, k]` for stacked experts.
    ///
    /// # Errors
    /// As [`Room::view`].
    pub fn weight(&mut self, class: Class, enc: Enc, shape: &[u64]) -> Result<View> {
        let (parts, part) = match (class, shape) {
            (Class::Experts, [parts, part @ ..]) => (*parts, part),
            _ => (1, shape),
        };
        let (layout, part_bytes) = self.device.layout(class, enc, part);
        if layout == Layout::Plain {
            return self.view(enc, shape);
        }
        let bytes = parts.saturating_mul(part_bytes);
        match &mut self.arena {
            Some(arena) => Ok(arena.private(enc, shape, layout, bytes)?),
            None => {
                // Private layouts have no scales of their own: their bytes are all there is.
                let plain = View::reserved_bytes(Enc::U8, &[bytes]);
                self.bytes = self.bytes.saturating_add(plain);
                Ok(View::absent(enc))
            }
        }
    }
}
