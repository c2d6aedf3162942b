//! File bytes to RGB.

use std::fmt::Display;
use std::io::Cursor;

use png::{BitDepth, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::panic_guard::answered;
use super::{Error, Picture};

/// First bytes of a PNG file.
const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// First bytes of a JPEG file: start of image and of the next marker.
const JPEG_MAGIC: &[u8] = b"\xFF\xD8\xFF";

/// Grey level shown through transparent pixels, the one the hosted service uses.
const BACKDROP: u32 = 0xFD;

/// Memory the PNG reader may take for rows and ancillary chunks, the pixels not counted.
const PNG_WORK_BYTES: usize = 16 << 20;

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
/// - CMYK whose cyan is subsampled horizontally, which is rare, comes out wrong from the JPEG
///   decoder.
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
/// [`Error::Implausible`] before decoding, [`Error::Malformed`] from the decoder, also
/// where it panics.
pub fn decode(file: &[u8], limits: &DecodeLimits) -> Result<Picture, Error> {
    let bytes = file.len() as u64;
    if bytes > limits.max_file_bytes {
        return Err(Error::FileTooLarge { bytes, max_bytes: limits.max_file_bytes });
    }
    let (format, decode): (_, Decode) = if file.starts_with(PNG_MAGIC) {
        ("PNG", decode_png)
    } else if file.starts_with(JPEG_MAGIC) {
        ("JPEG", decode_jpeg)
    } else {
        return Err(Error::UnknownFormat);
    };
    // The JPEG decoder panics on some files, sound ones among them, where chroma is subsampled
    // in unusual ways or headers lie.
    answered(|| decode(file, limits))
        .unwrap_or_else(|| Err(malformed(format, &"the decoder cannot cope with it")))
}

/// The decoder of one format.
type Decode = fn(&[u8], &DecodeLimits) -> Result<Picture, Error>;

fn decode_png(file: &[u8], limits: &DecodeLimits) -> Result<Picture, Error> {
    let malformed = |error: png::DecodingError| malformed("PNG", &error);
    let work = png::Limits { bytes: PNG_WORK_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), work);
    // Palettes, narrow grey levels and tRNS become channels of 8 or 16 bits. STRIP_16 would
    // truncate to 8, not round.
    decoder.set_transformations(Transformations::EXPAND);
    let (width, height) = decoder.read_header_info().map_err(malformed)?.size();
    check_size(file, width, height, limits)?;
    let mut reader = decoder.read_info().map_err(malformed)?;
    let (color, depth) = reader.output_color_type();
    let bytes = reader.output_buffer_size().ok_or(png::DecodingError::LimitsExceeded);
    let mut samples = vec![0; bytes.map_err(malformed)?];
    reader.next_frame(&mut samples).map_err(malformed)?;
    if depth == BitDepth::Sixteen {
        samples =
            samples.as_chunks().0.iter().map(|&wide| narrow(u16::from_be_bytes(wide))).collect();
    }
    Picture::new(width, height, rgb(samples, color.samples()))
}

fn decode_jpeg(file: &[u8], limits: &DecodeLimits) -> Result<Picture, Error> {
    let malformed = |error: zune_jpeg::errors::DecodeErrors| malformed("JPEG", &error);
    // Sides are checked below, with errors of our own.
    let options = DecoderOptions::default().set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(malformed)?;
    // The format has 16 bits for each side.
    let (width, height) = decoder.dimensions().map_or((0, 0), |(w, h)| (w as u32, h as u32));
    check_size(file, width, height, limits)?;
    let space = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => ColorSpace::Luma,
        _ => ColorSpace::RGB,
    };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let samples = decoder.decode().map_err(malformed)?;
    Picture::new(width, height, rgb(samples, space.num_components()))
}

/// Holds the size that a header claims against the limits and the length of the file.
fn check_size(file: &[u8], width: u32, height: u32, limits: &DecodeLimits) -> Result<(), Error> {
    if width == 0 || height == 0 {
        return Err(Error::Empty { width, height });
    }
    if width.max(height) > limits.max_side {
        return Err(Error::SideTooLong { width, height, max_side: limits.max_side });
    }
    let bytes = file.len() as u64;
    if u64::from(width) * u64::from(height) > bytes.saturating_mul(MAX_PIXELS_PER_BYTE) {
        return Err(Error::Implausible { bytes, width, height });
    }
    Ok(())
}

/// A 16-bit level in eight bits: divided by 257, to nearest (the divisor is odd, so no ties).
fn narrow(level: u16) -> u8 {
    // At most (65535 + 128) / 257 = 255.
    ((u32::from(level) + 128) / 257) as u8
}

/// Interleaved `samples` of grey, grey and alpha, RGB or RGBA as RGB over the backdrop.
fn rgb(samples: Vec<u8>, channels: usize) -> Vec<u8> {
    match channels {
        1 => samples.into_iter().flat_map(|grey| [grey; 3]).collect(),
        2 => {
            let pixels = samples.as_chunks().0.iter();
            pixels.flat_map(|&[grey, alpha]| blend([grey, grey, grey, alpha])).collect()
        }
        3 => samples,
        _ => samples.as_chunks().0.iter().flat_map(|&pixel| blend(pixel)).collect(),
    }
}

/// One pixel over the backdrop.
fn blend([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    // At most (255 * 255 + 127) / 255 = 255.
    [red, green, blue]
        .map(|level| ((u32::from(level) * alpha + BACKDROP * (255 - alpha) + 127) / 255) as u8)
}

/// The decoder's message on one line.
fn malformed(format: &'static str, error: &dyn Display) -> Error {
    let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Malformed { format, reason }
}
