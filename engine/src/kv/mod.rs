//! Cache memory of sequences: pools of pages, the pages of a sequence, rollback.
//!
//! Three pools. Pages of compressed entries cover 64 positions and live as long as the sequence;
//! one page id serves every source. Window pages cover 32 positions and roll: all layers and draft
//! stages share them. Pages of open groups cover 8 positions and roll likewise.

mod pages;
mod pool;
mod pools;
mod rolling;
mod snapshot;

pub use pages::{Checkpoint, SequencePages};
pub use pool::{OutOfPages, Page, PagePool};
pub use pools::{OPEN_PAGE_TOKENS, PAGE_TOKENS, PagePools, PoolPages, WINDOW_PAGE_TOKENS};
pub use snapshot::Snapshot;
