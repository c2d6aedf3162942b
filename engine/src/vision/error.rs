//! What can be wrong with a picture or with the limits it is measured against.

/// A refused picture. One line each: the thing and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The file is larger than the limit.
    #[error("picture file has {bytes} bytes, the limit is {max_bytes}; send a smaller file")]
    FileTooLarge {
        /// Size of the file.
        bytes: u64,
        /// The limit it broke.
        max_bytes: u64,
    },
    /// The first bytes are those of neither format.
    #[error("picture is neither PNG nor JPEG; convert it to one of them")]
    UnknownFormat,
    /// A side is longer than the limit.
    #[error("picture is {width}x{height} pixels, the limit is {max_side} per side; scale it down")]
    SideTooLong {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// The limit per side in pixels.
        max_side: u32,
    },
    /// A side is zero.
    #[error("picture is {width}x{height} pixels, it needs at least one pixel; send another")]
    Empty {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The header claims more pixels than so short a file can encode.
    #[error(
        "picture file of {bytes} bytes cannot hold the {width}x{height} pixels its header claims; \
         send the whole file"
    )]
    Implausible {
        /// Size of the file.
        bytes: u64,
        /// Claimed width in pixels.
        width: u32,
        /// Claimed height in pixels.
        height: u32,
    },
    /// The decoder gave up.
    #[error("{format} picture does not decode ({reason}); save it again and resend")]
    Malformed {
        /// `PNG` or `JPEG`.
        format: &'static str,
        /// The decoder's reason, on one line.
        reason: String,
    },
    /// Pixel bytes that do not match the size given with them.
    #[error("picture of {width}x{height} pixels came with {bytes} RGB bytes; pass three per pixel")]
    PixelBytes {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes passed.
        bytes: u64,
    },
    /// A side that is no multiple of the patch.
    #[error(
        "picture of {width}x{height} pixels does not divide into patches of {patch}; pad it first"
    )]
    NotPatched {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Side of a patch in pixels.
        patch: u32,
    },
    /// A field of the picture limits that no picture could satisfy.
    #[error("vision setting {field} is {value}, it must be {allowed}; correct vision_config")]
    Limits {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}
