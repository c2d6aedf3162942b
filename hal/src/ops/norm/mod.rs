//! RMSNorm and rotary embedding.

pub mod rms;
pub mod rms_cast;
pub mod rms_rotate;
pub mod rotate;

pub use rms::{RmsNorm, RmsNormIo};
pub use rms_cast::{RmsNormCast, RmsNormCastIo};
pub use rms_rotate::{RmsNormRotate, RmsNormRotateIo};
pub use rotate::{Rotate, RotateIo, Yarn, mscale};
