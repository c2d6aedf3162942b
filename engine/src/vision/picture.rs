//! A decoded picture.

use super::Error;

/// An RGB picture with eight bits per channel: rows from the top, three bytes per pixel.
/// It has at least one pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Picture {
    /// Wraps `rgb`, which holds `height` rows of `width` pixels of three bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] if a side is zero, [`Error::PixelBytes`] if the length does not match.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, Error> {
        if width == 0 || height == 0 {
            return Err(Error::Empty { width, height });
        }
        // 128 bits: three bytes for each of almost 2^64 pixels.
        if rgb.len() as u128 != 3 * u128::from(width) * u128::from(height) {
            return Err(Error::PixelBytes { width, height, bytes: rgb.len() as u64 });
        }
        Ok(Self { width, height, rgb })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The bytes, `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The bytes of the rows from the top, `3 * width` each.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rgb.chunks_exact(3 * self.width as usize)
    }
}
