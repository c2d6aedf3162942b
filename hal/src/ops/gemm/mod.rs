//! The five kinds of linear: `y = W x` per row.

pub mod bf16_linear;
pub mod f32_linear;
pub mod grouped_linear;
pub mod mxfp4_linear;
pub mod mxfp8_linear;

pub use bf16_linear::{Bf16Linear, Bf16LinearIo};
pub use f32_linear::{F32Linear, F32LinearIo};
pub use grouped_linear::{GroupedLinear, GroupedLinearIo};
pub use mxfp4_linear::{Mxfp4Linear, Mxfp4LinearIo};
pub use mxfp8_linear::{Mxfp8Linear, Mxfp8LinearIo};
