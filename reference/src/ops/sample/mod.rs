//! Cards of the family `sample`.

mod draw;
mod filter;
mod log_probs;
mod mask;
mod penalise;
