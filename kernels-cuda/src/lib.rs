//! NVIDIA backend.
//!
//! Kernels are compiled ahead of time, one image per source and target, and embedded compressed
//! ([`image`]); the driver is opened at run time ([`driver`]). A build without the compiler has no
//! images, and a machine without the driver no devices: [`CudaProvider`] says which, and everything else
//! of the program works.
//!
//! Plain kernels are those of [`tandem_portable`]. Adding a tuned one: a source in `kernels/FAMILY/OP_sm90.cu`, and a row
//! in `src/ops/FAMILY/OP.rs` that names it. The first of an operator also names it in `src/ops/mod.rs`.

mod device;
pub mod driver;
#[cfg(feature = "emu")]
pub mod emu;
mod graph;
mod group;
pub mod image;
mod kernel;
mod launcher;
mod memory;
mod ops;
mod proof;
mod provider;
mod rows;
mod shared;
mod stream;
mod ticket;

pub use device::CudaDevice;
pub use image::{Entry, Image};
pub use provider::CudaProvider;
