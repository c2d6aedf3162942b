//! Plain rows of the `kv` operators.

mod compress;
mod entry;
mod fetch;
mod locate;
mod norm_rotate_store;
mod store;

pub use entry::{entry, known};
