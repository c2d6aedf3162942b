//! Plain rows of the `index` operators.

mod candidates;
mod scores;
mod top_k;
