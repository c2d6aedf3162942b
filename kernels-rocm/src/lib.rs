//! AMD backend. Kernels are compiled ahead of time, one code object per source and target, committed and
//! embedded ([`code_object`]); the driver is opened at run time ([`driver`]). None is launched yet:
//! [`RocmProvider`] says so, and which boards the driver lists.

pub mod arguments;
pub mod code_object;
pub mod driver;
mod provider;

pub use code_object::{CodeObject, Entry};
pub use provider::RocmProvider;
