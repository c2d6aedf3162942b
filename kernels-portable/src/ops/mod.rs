//! Plain rows of every operator, in the folders of their pages, and what tuned rows of backends share with them.

mod attn;
pub mod comm;
mod engram;
mod gemm;
mod index;
pub mod kv;
mod mhc;
pub mod moe;
mod norm;
mod prelude;
mod quant;
mod rows;
mod sample;
mod spec;
mod unwritten;
mod vision;
