//! What instructions do: one file for each class, with a table where a class has many.

pub(crate) mod atomic;
mod bits;
mod carry;
mod compare;
mod convert;
pub(crate) mod cross_lane;
mod division;
mod eight_bit;
mod element;
mod float32;
mod float64;
pub(crate) mod flow;
mod integer32;
mod integer64;
mod layout;
pub(crate) mod lds;
pub(crate) mod matrix;
pub(crate) mod memory;
mod narrow;
pub(crate) mod packed;
mod row;
pub(crate) mod scalar;
mod scalar_arithmetic;
mod scalar_bits;
pub(crate) mod scalar_memory;
pub(crate) mod vector;

#[cfg(test)]
mod tests;
