//! Every operator in pure Rust.
