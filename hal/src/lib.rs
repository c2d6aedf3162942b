//! The contract between devices, operators and whoever runs them.

pub mod num;
