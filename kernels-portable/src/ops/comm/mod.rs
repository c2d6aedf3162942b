//! Plain rows of the `comm` operators.
//!
//! The ranks of a group are devices of one process, each with a window of memory that all of them write
//! to. A device's collectives go on one stream at a time, as every rank must launch them in one order.

mod all_gather;
mod all_reduce;
pub mod exchange;
