//! Tuned rows of the `gemm` operators.

mod grouped_linear;
mod mxfp8_linear;
mod narrow;
mod wide;
