//! Conversions between encodings.

pub mod cast;
pub mod decode;
pub mod requant;

pub use cast::{Cast, CastIo};
pub use decode::{Decode, DecodeIo};
pub use requant::{Requant, RequantIo};
