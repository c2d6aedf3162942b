//! Kernel rows of the `index` operators.

mod candidates;
mod scores;
mod select;
mod top_k;
