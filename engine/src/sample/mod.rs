//! From logits to tokens: parameters, random numbers, the operators of a step.

mod draws;
mod filter_lists;
mod log_prober;
mod masker;
mod parameters;
mod penaliser;
mod philox;
pub(crate) mod read;
mod sampler;

pub use draws::{Draws, Purpose};
pub(crate) use filter_lists::{FilterLists, FilterViews};
pub use parameters::{MAX_LOG_PROBS, SamplingParameters};
pub(crate) use philox::philox;
pub(crate) use sampler::Sampler;
