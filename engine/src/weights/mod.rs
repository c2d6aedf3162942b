//! Checkpoint files: where their bytes lie, checked before anything is allocated.

pub mod checkpoint;
pub mod header;
pub mod source;

pub use checkpoint::{Checkpoint, Tensor};
pub use header::Dtype;
pub use source::{Files, ReadAt};
