//! NVIDIA backend. It holds no kernels yet: [`CudaProvider`] says so, and whether a driver is there, without
//! loading it.

mod driver;
mod provider;

pub use provider::CudaProvider;
