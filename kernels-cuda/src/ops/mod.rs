//! Kernel rows of every operator, in the folders of their pages.

mod gemm;
mod kv;
mod mhc;
mod norm;
mod prelude;
mod quant;
mod rows;
mod unwritten;
