//! Speculative decoding.

pub mod confidence;
pub mod markov;
pub mod verify;

pub use confidence::{Confidence, ConfidenceIo};
pub use markov::{Markov, MarkovIo};
pub use verify::{Rule, Verify, VerifyIo};
