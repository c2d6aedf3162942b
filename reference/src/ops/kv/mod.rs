//! Cards of the family `kv`.

mod compress;
mod fetch;
mod locate;
mod norm_rotate_store;
mod store;
