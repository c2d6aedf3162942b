//! Plain rows of the `norm` operators.

mod rms;
mod rms_cast;
mod rms_rotate;
mod rotate;
mod rotation;

pub(super) use rotation::{Rotation, table};
