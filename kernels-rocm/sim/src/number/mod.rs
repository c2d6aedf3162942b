//! Number formats below 16 bits, and how matrix units add.

mod minifloat;
mod sums;

pub(crate) use minifloat::{Minifloat, e8m0};
pub(crate) use sums::cdna3_sum;
