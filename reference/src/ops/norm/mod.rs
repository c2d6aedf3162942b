//! Cards of the family `norm`.

mod rms;
mod rms_cast;
mod rms_rotate;
mod rotate;
