//! Checkpoint files: where their bytes lie, checked before anything is allocated; and the way of
//! those bytes onto a device.

pub mod checkpoint;
mod codes;
pub mod header;
pub mod load;
pub(crate) mod random_codes;
mod room;
mod share;
pub mod source;
mod staging;
mod stored;

pub use checkpoint::{Checkpoint, Tensor};
pub use header::Dtype;
pub use load::{Content, Loader, Module, Progress, Source, load};
pub use room::Room;
pub use share::Share;
pub use source::{Files, ReadAt};
