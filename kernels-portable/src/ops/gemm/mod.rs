//! Plain rows of the `gemm` operators.

mod bf16_linear;
mod f32_linear;
mod grouped_linear;
mod mxfp4_linear;
mod mxfp8_linear;
mod tile;
