//! Plain rows of the `quant` operators.

mod cast;
mod decode;
mod requant;
mod rule;

pub(super) use rule::Rule;
