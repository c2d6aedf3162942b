//! AMD backend. It holds no kernels yet: [`RocmProvider`] says so, and whether a driver is there, without
//! loading it.

mod driver;
mod provider;

pub use provider::RocmProvider;
