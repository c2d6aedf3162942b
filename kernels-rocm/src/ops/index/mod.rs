//! Tuned rows of the `index` operators.

mod scores;
