//! Plain rows of the `sample` operators.

mod draw;
mod filter;
mod log_probs;
mod mask;
mod penalise;
