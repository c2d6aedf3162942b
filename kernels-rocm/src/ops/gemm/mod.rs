//! Tuned rows of the `gemm` operators.

mod mxfp8_linear;
