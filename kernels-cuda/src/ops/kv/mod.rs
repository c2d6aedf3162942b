//! Kernel rows of the `kv` operators.

mod compress;
mod entry;
mod fetch;
mod locate;
mod norm_rotate_store;
mod store;

pub(super) use entry::{entry, known};
