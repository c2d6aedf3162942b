//! From logits to tokens.

pub mod draw;
pub mod filter;
pub mod log_probs;
pub mod mask;
pub mod penalise;

pub use draw::{Draw, DrawIo};
pub use filter::{Filter, FilterIo};
pub use log_probs::{LogProbs, LogProbsIo};
pub use mask::{MaskLogits, MaskLogitsIo};
pub use penalise::{Penalise, PenaliseIo};
