//! Kernel rows of the `gemm` operators.

mod bf16_linear;
