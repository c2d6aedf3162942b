//! Every operator, by family. One file is one contract: the module text is the operator page.
//!
//! [`for_each_operator!`](crate::for_each_operator) is the one place that names them all.

#[macro_use]
mod list;
mod prelude;

pub mod attn;
pub mod comm;
pub mod engram;
pub mod gemm;
pub mod index;
pub mod kv;
pub mod mhc;
pub mod moe;
pub mod norm;
pub mod quant;
pub mod rows;
pub mod sample;
pub mod spec;
pub mod vision;

pub use attn::*;
pub use comm::*;
pub use engram::*;
pub use gemm::*;
pub use index::*;
pub use kv::*;
pub use list::Op;
pub use mhc::*;
pub use moe::*;
pub use norm::*;
pub use quant::*;
pub use rows::*;
pub use sample::*;
pub use spec::*;
pub use vision::*;
