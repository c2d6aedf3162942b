//! Cards by family, in the tree of `tandem_hal::ops`.

mod attn;
mod comm;
mod engram;
mod gemm;
mod index;
mod kv;
mod mhc;
mod moe;
mod norm;
mod quant;
mod rows;
mod sample;
mod spec;
mod vision;
