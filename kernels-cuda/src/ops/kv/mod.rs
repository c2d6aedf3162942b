//! Kernel rows of the `kv` operators.

mod store;
