//! File bytes to RGB.

use std::io::Cursor;

use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, Limits};

use super::{Error, Picture};

/// Grey level shown through transparent pixels, the one the hosted service uses.
const BACKDROP: u32 = 0xFD;

/// Memory the PNG reader may take for rows and ancillary chunks, the pixels not counted.
const PNG_WORK_BYTES: u64 = 16 << 20;

/// No file byte encodes more pixels than this. Deflate expands at most 1032 times and a PNG pixel
/// takes at least one bit; a JPEG spends at least one bit on each unit of at most 32x32 pixels,
/// which is less.
const MAX_PIXELS_PER_BYTE: u64 = 1032 * 8;

/// How large a picture may be before anything is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest file in bytes.
    pub max_file_bytes: u64,
    /// Longest side in pixels.
    pub max_side: u32,
}

impl Default for DecodeLimits {
    /// 32 MiB and 8192 pixels, as the hosted service has them for requests of few pictures.
    fn default() -> Self {
        Self { max_file_bytes: 32 << 20, max_side: 8192 }
    }
}

/// Decodes a PNG or JPEG file to RGB.
///
/// - Palettes and grey levels are expanded; CMYK becomes RGB; of an animated PNG the default
///   frame counts.
/// - 16-bit channels become 8-bit by division by 257, rounded to nearest.
/// - Transparency is blended onto #FDFDFD: `(s * a + 0xFD * (255 - a) + 127) / 255` in integers.
///   (The publisher's own script drops the alpha channel, which blackens many screenshots.)
/// - Orientation tags, gamma and colour profiles are not applied.
///
/// Sizes are checked from the header alone, before memory is taken for pixels. Decoding a PNG then
/// takes at most 12 bytes per pixel (16-bit RGBA and its 8-bit copy), most take 3 or 7.
///
/// # Errors
///
/// [`Error::FileTooLarge`], [`Error::UnknownFormat`], [`Error::SideTooLong`], [`Error::Empty`],
/// [`Error::Implausible`] before decoding, [`Error::Malformed`] from the decoder.
pub fn decode(file: &[u8], limits: &DecodeLimits) -> Result<Picture, Error> {
    let bytes = file.len() as u64;
    if bytes > limits.max_file_bytes {
        return Err(Error::FileTooLarge { bytes, max_bytes: limits.max_file_bytes });
    }
    match image::guess_format(file) {
        Ok(ImageFormat::Png) => {
            let mut work = Limits::no_limits();
            work.max_alloc = Some(PNG_WORK_BYTES);
            let decoder = PngDecoder::with_limits(Cursor::new(file), work);
            pixels("PNG", decoder, bytes, limits)
        }
        Ok(ImageFormat::Jpeg) => pixels("JPEG", JpegDecoder::new(Cursor::new(file)), bytes, limits),
        _ => Err(Error::UnknownFormat),
    }
}

/// Checks the header that `decoder` has read, then decodes.
fn pixels<D: ImageDecoder>(
    format: &'static str,
    decoder: Result<D, ImageError>,
    bytes: u64,
    limits: &DecodeLimits,
) -> Result<Picture, Error> {
    let decoder = decoder.map_err(|error| malformed(format, &error))?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(Error::Empty { width, height });
    }
    if width.max(height) > limits.max_side {
        return Err(Error::SideTooLong { width, height, max_side: limits.max_side });
    }
    if u64::from(width) * u64::from(height) > bytes.saturating_mul(MAX_PIXELS_PER_BYTE) {
        return Err(Error::Implausible { bytes, width, height });
    }
    let decoded = DynamicImage::from_decoder(decoder).map_err(|error| malformed(format, &error))?;
    let rgb = if decoded.color().has_alpha() {
        decoded.into_rgba8().pixels().flat_map(|pixel| blend(pixel.0)).collect()
    } else {
        decoded.into_rgb8().into_raw()
    };
    Picture::new(width, height, rgb)
}

/// One pixel over the backdrop.
fn blend([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    // At most (255 * 255 + 127) / 255 = 255.
    [red, green, blue]
        .map(|level| ((u32::from(level) * alpha + BACKDROP * (255 - alpha) + 127) / 255) as u8)
}

/// The decoder's message on one line.
fn malformed(format: &'static str, error: &ImageError) -> Error {
    let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Malformed { format, reason }
}
