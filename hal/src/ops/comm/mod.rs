//! Collectives: operators like all others, planned, captured and replayed. Every rank of the group
//! launches the same one, on its own thread, and with as many rows; a rank without rows takes part as
//! well. A rank that does not arrive, or comes with another shape, is `Error::Peer` on all.

pub mod all_gather;
pub mod all_reduce;

pub use all_gather::{AllGather, AllGatherIo};
pub use all_reduce::{AllReduce, AllReduceIo};
