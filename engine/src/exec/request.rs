//! What a caller asks for.

use super::{Geometry, chunk::PictureSpan};
use crate::error::{Error, Result};
use crate::sample::SamplingParameters;

/// Names a request for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A prompt and how to go on from it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// Pictures; their spans lie in the prompt, apart from each other.
    pub pictures: Vec<PictureSpan>,
    /// How tokens are chosen.
    pub sampling: SamplingParameters,
    /// Ids that end the answer. They count as generated but are not reported as tokens.
    pub stop_ids: Vec<u32>,
    /// Tokens to generate at most, the stop id included. `None`, and whatever passes the room that
    /// the prompt leaves, means that room.
    pub max_tokens: Option<u64>,
    /// Whether to draft, where the model can.
    pub drafts: bool,
}

impl Request {
    /// Whether the request can ever be served by a model of this geometry with room for
    /// `capacity_tokens` in its cache.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the field, the number and the limit.
    pub(super) fn check(
        &self,
        geometry: &Geometry,
        capacity_tokens: u64,
        biases: u64,
    ) -> Result<()> {
        let refuse = |field: &str, problem: String| Err(Error::argument(field, problem));
        let (tokens, context) = (self.prompt.len() as u64, geometry.context_tokens);
        if tokens == 0 {
            return refuse("prompt", "it has no tokens; give at least one".into());
        }
        if tokens >= context {
            return refuse(
                "prompt",
                format!("{tokens} tokens leave no room in a context of {context}; shorten it"),
            );
        }
        if tokens >= capacity_tokens {
            return refuse(
                "prompt",
                format!(
                    "{tokens} tokens, but the cache holds {capacity_tokens}; shorten it or \
                     allow longer sequences"
                ),
            );
        }
        if let Some(id) = self.prompt.iter().find(|id| u64::from(**id) >= geometry.vocab) {
            let vocab = geometry.vocab;
            return refuse("prompt", format!("id {id} is outside the vocabulary of {vocab}"));
        }
        if self.max_tokens == Some(0) {
            return refuse("max_tokens", "0 asks for nothing; give at least 1".into());
        }
        self.check_pictures(tokens)?;
        self.sampling.check(geometry.vocab, biases)
    }

    fn check_pictures(&self, tokens: u64) -> Result<()> {
        let mut end = 0;
        for span in &self.pictures {
            let positions = span.positions();
            if positions.is_empty() || positions.start < end || positions.end > tokens {
                let problem = format!(
                    "positions {positions:?} are empty, out of order or outside the prompt of \
                     {tokens} tokens"
                );
                return Err(Error::argument("pictures", problem));
            }
            end = positions.end;
        }
        Ok(())
    }

    /// Tokens to generate at most, given the room there is.
    pub(super) fn limit_tokens(&self, room_tokens: u64) -> u64 {
        let room = room_tokens - self.prompt.len() as u64;
        self.max_tokens.map_or(room, |asked| asked.min(room))
    }
}
