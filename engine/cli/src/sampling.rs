//! How tokens are chosen, in the spelling of the servers its users know.

use clap::Args;
use tandem_engine::Result;
use tandem_engine::sample::SamplingParameters;

/// Sampling.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sampling {
    /// Divides the logits; 0 takes the most likely token
    #[arg(long, visible_alias = "temp", value_name = "T", default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// Share of probability kept
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub(crate) top_p: f32,
    /// Tokens kept, the most likely ones; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) top_k: i64,
    /// Least probability kept, as a share of the largest
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub(crate) min_p: f32,
    /// The same seed and prompt give the same answer; a fresh one if left out
    #[arg(short, long)]
    pub(crate) seed: Option<u64>,
}

impl Sampling {
    /// A request's parameters, within their ranges: a mistake is known before weights are read.
    ///
    /// # Errors
    /// The first that is outside its range.
    pub(crate) fn parameters(&self) -> Result<SamplingParameters> {
        let Self { temperature, top_p, top_k, min_p, seed } = *self;
        let parameters =
            SamplingParameters { temperature, top_p, top_k, min_p, seed, ..Default::default() };
        // No token is named here, so neither the vocabulary nor the room for biases matters.
        parameters.check(u64::MAX, 0)?;
        Ok(parameters)
    }
}
