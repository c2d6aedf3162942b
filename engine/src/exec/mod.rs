//! Steps: what runs, on which rows, and what comes of it.

pub mod batch;

pub use batch::{Batch, DraftBatch, PictureRows, RatioLists, UpperRows};
