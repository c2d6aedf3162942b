//! Tuned rows of the `gemm` operators.

mod f32_linear;
mod grouped_linear;
mod mxfp8_linear;
mod narrow;
mod wide;
