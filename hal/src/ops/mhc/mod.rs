//! Hyper-connections: four copies of the residual, mixed around every sub-layer.

pub mod collapse;
pub mod collapse_norm;
pub mod expand;
pub mod mean;
pub mod mixes;
pub mod start;

pub use collapse::{MhcCollapse, MhcCollapseIo};
pub use collapse_norm::{MhcCollapseNorm, MhcCollapseNormIo};
pub use expand::{MhcExpand, MhcExpandIo};
pub use mean::{MhcMean, MhcMeanIo};
pub use mixes::{MhcMixes, MhcMixesIo};
pub use start::{MhcStart, MhcStartIo};
