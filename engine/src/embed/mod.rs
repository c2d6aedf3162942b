//! Texts as vectors: the mean of a text's final normed hidden states, at unit length.
//!
//! A vector depends on its text alone: rows of a step are independent of each other, and states are
//! added up in the order of the text, whatever ran beside them and however the text was cut.

mod embedder;
mod pool;

pub use embedder::{Embedded, Embedder};
