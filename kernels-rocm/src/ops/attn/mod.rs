//! Tuned rows of the `attn` operators.

mod sparse;
