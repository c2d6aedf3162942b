//! Cards of the family `kv`.

mod compress;
mod fetch;
pub(super) mod locate;
mod norm_rotate_store;
mod store;
#[cfg(test)]
mod tests;
