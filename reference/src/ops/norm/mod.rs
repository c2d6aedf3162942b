//! Cards of the family `norm`.

pub(super) mod rms;
mod rms_cast;
pub(super) mod rms_rotate;
pub(super) mod rotate;
#[cfg(test)]
mod tests;
