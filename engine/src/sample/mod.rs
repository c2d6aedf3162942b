//! From logits to tokens: parameters, random numbers, the operators of a step.

mod draws;
mod parameters;
mod philox;

pub use draws::{Draws, Purpose};
pub use parameters::{MAX_LOG_PROBS, SamplingParameters};
pub(crate) use philox::philox;
