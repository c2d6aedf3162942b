//! Cards of the family `gemm`.

mod bf16_linear;
mod f32_linear;
mod grouped_linear;
pub(super) mod linear;
mod mxfp4_linear;
mod mxfp8_linear;
#[cfg(test)]
mod tests;
