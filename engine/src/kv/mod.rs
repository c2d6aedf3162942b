//! Cache memory of sequences: pools of pages, the pages of a sequence, rollback.
//!
//! Three pools. Pages of compressed entries cover 64 positions and live as long as the sequence;
//! one page id serves every source. Window pages cover 32 positions and roll: all layers and draft
//! stages share them. Pages of open groups cover 8 positions and roll likewise.
//!
//! The prefix cache keeps whole compressed pages of earlier sequences, and windows at some of their
//! ends, for sequences that begin alike. A prefix store keeps what it holds in a folder, for the next
//! process.

mod lease;
mod page_memory;
mod pages;
mod pool;
mod pools;
mod prefix;
mod prefix_cache;
mod prefix_hit;
mod prefix_journal;
mod prefix_restore;
mod prefix_store;
#[cfg(test)]
mod prefix_store_tests;
mod rolling;
mod slot_file;
mod snapshot;

pub use lease::Lease;
pub use page_memory::{PageKind, PageMemory};
pub use pages::{Checkpoint, SequencePages};
pub use pool::{OutOfPages, Page, PagePool};
pub use pools::{OPEN_PAGE_TOKENS, PAGE_TOKENS, PagePools, PoolPages, WINDOW_PAGE_TOKENS};
pub use prefix::{Prefix, PrefixPicture};
pub use prefix_cache::{BlockId, PrefixCache, PrefixCounts};
pub use prefix_hit::PrefixHit;
pub use prefix_store::{PrefixStore, Restored};
pub use snapshot::Snapshot;
