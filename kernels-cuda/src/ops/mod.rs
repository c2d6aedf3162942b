//! Kernel rows of every operator, in the folders of their pages.

mod engram;
mod gemm;
mod kv;
mod mhc;
mod moe;
mod norm;
mod prelude;
mod quant;
mod rows;
mod unwritten;
