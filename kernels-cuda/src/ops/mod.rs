//! Kernel rows of every operator, in the folders of their pages.

mod attn;
pub(crate) mod comm;
mod engram;
mod gemm;
mod index;
mod kv;
mod mhc;
mod moe;
mod norm;
mod prelude;
mod quant;
mod rows;
mod sample;
mod spec;
mod unwritten;
mod vision;
