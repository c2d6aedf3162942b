//! Tuned rows of the `index` operators.

mod scores;
mod select;
mod top_k;
