//! The picture tower and its aligner.

pub mod add_rows;
pub mod dense_attention;
pub mod gated_silu;
pub mod gelu;
pub mod rotate_halves;
pub mod unfold;

pub use add_rows::{AddRows, AddRowsIo};
pub use dense_attention::{DenseAttention, DenseAttentionIo};
pub use gated_silu::{GatedSilu, GatedSiluIo};
pub use gelu::{Gelu, GeluIo};
pub use rotate_halves::{RotateHalves, RotateHalvesIo};
pub use unfold::{Unfold, UnfoldIo};
