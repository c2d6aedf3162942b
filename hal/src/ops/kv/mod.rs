//! Caches: paged entries of one record each. An address is `page * entries_per_page + slot`.

pub mod cache;
pub mod compress;
pub mod fetch;
pub mod locate;
pub mod norm_rotate_store;
pub mod store;

pub use cache::Cache;
pub use compress::{Compress, CompressIo};
pub use fetch::{Fetch, FetchIo};
pub use locate::{Locate, LocateIo};
pub use norm_rotate_store::{NormRotateStore, NormRotateStoreIo};
pub use store::{Store, StoreIo};
