//! Attention over cached latents.

pub mod merge;
pub mod mla_absorbed;
pub mod mla_expanded;
pub mod sparse;

pub use merge::{MergeAttention, MergeAttentionIo};
pub use mla_absorbed::{MlaAbsorbed, MlaAbsorbedIo};
pub use mla_expanded::{Mla, MlaExpanded, MlaExpandedIo};
pub use sparse::{SparseAttention, SparseAttentionIo};
