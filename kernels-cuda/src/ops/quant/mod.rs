//! Kernel rows of the `quant` operators.

mod cast;
mod rule;

pub(super) use rule::Rule;
