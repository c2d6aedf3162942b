//! Scalar number formats of the model on the host: encode, decode, and the scale of a block.
//!
//! These are the definitions that tests, checkers and loaders compare against, so every encoder
//! rounds once, to nearest with ties to even, and every edge is written down here:
//!
//! | format | finite range | zeros | NaN | infinity in | NaN in |
//! |---|---|---|---|---|---|
//! | bf16 | 2^-133 to (2 - 2^-7) * 2^127 | both | any with mantissa | kept | quiet, sign and top payload kept |
//! | [`E4m3Fn`] | 2^-9 to 448 | both | 0x7F, 0xFF | saturates | 0x7F |
//! | [`E4m3Fnuz`] | 2^-10 to 240 | +0 only | 0x80 | saturates | 0x80 |
//! | [`E2m1`] | 0.5 to 6 | both | none | saturates | 7 (+6) |
//! | [`Ue8m0`] | 2^-127 to 2^127 | none | 0xFF | NaN | NaN |
//!
//! `E2m1` cannot hold a NaN and the saturating casts hide an infinity, so in a block the *scale*
//! carries both: a block that holds one gets a NaN scale and dequantises to NaN throughout
//! (see [`block`]).
//!
//! Equality and hashing of the newtypes are of codes, not of values.

pub mod bf16;
pub mod block;
mod e2m1;
mod e4m3fn;
mod e4m3fnuz;
mod minifloat;
mod ue8m0;

pub use e2m1::E2m1;
pub use e4m3fn::E4m3Fn;
pub use e4m3fnuz::E4m3Fnuz;
pub use ue8m0::{ScaleOverflow, Ue8m0};

#[cfg(test)]
mod tests;
