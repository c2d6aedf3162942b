//! AMD backend. Kernels are compiled ahead of time, one code object per source and target, committed and
//! embedded ([`code_object`]). None is launched yet: [`RocmProvider`] says so, and whether a driver is there,
//! without loading it.

pub mod code_object;
mod driver;
mod provider;

pub use code_object::{CodeObject, Entry};
pub use provider::RocmProvider;
