//! NVIDIA backend.
//!
//! Kernels are compiled ahead of time, one image per source and target, and embedded compressed
//! ([`image`]); the driver is opened at run time ([`driver`]). A build without the compiler has no
//! images, and a machine without the driver no devices: [`CudaProvider`] says which, and everything else
//! of the program works.
//!
//! Adding a kernel: a source in `kernels/FAMILY/OP.cu`, and a row in `src/ops/FAMILY/OP.rs` that names
//! it. The first row of an operator also takes its name off the list in `src/ops/unwritten.rs`.

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
