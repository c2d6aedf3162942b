//! Rows of hyper-connections.

mod mixes;
