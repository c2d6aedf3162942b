//! Golden vectors replayed on a device.
//!
//! A folder of golden files holds what an independent implementation computed on a checkpoint. Free
//! running, two right implementations drift apart as soon as one rounding falls the other way, so
//! the sharp test feeds each layer the golden input and compares what that layer alone made of it.
//!
//! * [`GoldenFile`] reads a file; tensors that it lacks are skipped by name.
//! * [`Figure`] is one measured number with its gate; [`Report`] collects and judges them.

mod compare;
mod draft;
mod free;
mod golden;
mod pictures;
mod report;
mod run;
mod subject;
mod teacher;

pub use compare::{equal_share, median, percentile, relative_distance, unequal_share};
pub use golden::{Array, GoldenFile};
pub use report::{Figure, Limit, Report};
pub use run::Run;
pub use teacher::UNEQUAL_SHARE;
