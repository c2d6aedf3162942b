//! The indexer: which compressed entries a row attends to.

pub mod candidates;
pub mod scores;
pub mod select;
pub mod top_k;

pub use candidates::{Candidates, CandidatesIo};
pub use scores::{Scores, ScoresIo};
pub use select::{Select, SelectIo};
pub use top_k::{Blocks, TopK, TopKIo};
