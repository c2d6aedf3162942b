//! AMD backend. Kernels are compiled ahead of time, one code object per source and target, committed and
//! embedded ([`code_object`]); the driver is opened at run time ([`driver`]). A machine without the driver has
//! no devices: [`RocmProvider`] says why, and everything else of the program works.
//!
//! Rows are the plain ones of [`tandem_portable`], for both targets: an operator with one needs nothing here but its
//! committed code objects. Tuned ones stand in `ops`.

pub mod arguments;
pub mod code_object;
mod device;
pub mod driver;
#[cfg(test)]
mod faults;
mod graph;
mod group;
mod kernel;
mod launcher;
mod memory;
mod model;
mod ops;
mod proof;
mod provider;
mod rows;
mod shared;
mod stream;
mod ticket;

pub use code_object::{CodeObject, Entry};
pub use provider::RocmProvider;
