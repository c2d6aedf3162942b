//! Plain rows of the `attn` operators.

mod merge;
mod sparse;
