//! What a caller asks for.

use super::{EngineOptions, Geometry, PictureGeometry, PromptPicture};
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::sample::SamplingParameters;
use crate::text::TokenCount;

/// Names a request for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Whom a request is for. Clients share the engine fairly; it knows nothing else of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClientId(pub u64);

/// A prompt and how to go on from it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// Pictures, in the order of their spans in the prompt.
    pub pictures: Vec<PromptPicture>,
    /// How tokens are chosen.
    pub sampling: SamplingParameters,
    /// What the answer is held to.
    pub form: Option<Grammar>,
    /// Ids that end the answer. They count as generated but are not reported as tokens.
    pub stop_ids: Vec<u32>,
    /// Tokens to generate at most, the stop id included. `None`, and whatever passes the room that
    /// the prompt leaves, means that room.
    pub max_tokens: Option<u64>,
    /// Whether to draft, where the model can.
    pub drafts: bool,
    /// Whom it is for.
    pub client: ClientId,
    /// Only requests of equal salt share pages of the prefix cache.
    pub cache_salt: String,
}

impl Request {
    /// Whether the request can ever be served by a model of this geometry under these limits.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the field, the number and the limit.
    pub(super) fn check(&self, geometry: &Geometry, options: &EngineOptions) -> Result<()> {
        let refuse = |field: &str, problem: String| Err(Error::argument(field, problem));
        if self.prompt.is_empty() {
            return refuse("prompt", "it has no tokens; give at least one".into());
        }
        Self::check_length(TokenCount::Exactly(self.prompt.len() as u64), geometry, options)?;
        if let Some(id) = self.prompt.iter().find(|id| u64::from(**id) >= geometry.vocab) {
            let vocab = geometry.vocab;
            return refuse("prompt", format!("id {id} is outside the vocabulary of {vocab}"));
        }
        if self.max_tokens == Some(0) {
            return refuse("max_tokens", "0 asks for nothing; give at least 1".into());
        }
        if let Some(form) = &self.form
            && form.words() as u64 != geometry.vocab.div_ceil(32)
        {
            let (words, vocab) = (form.words(), geometry.vocab);
            let problem = format!("masks of {words} words for a vocabulary of {vocab}");
            return refuse("form", problem);
        }
        self.check_pictures(geometry.pictures.filter(|_| options.pictures > 0))?;
        self.sampling.check(geometry.vocab, options.biases)
    }

    /// Whether a prompt of so many tokens leaves room for an answer.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the number and the limit.
    pub(super) fn check_length(
        tokens: TokenCount,
        geometry: &Geometry,
        options: &EngineOptions,
    ) -> Result<()> {
        let (context, capacity) = (geometry.context_tokens, options.capacity_tokens(geometry));
        let problem = if tokens.least() >= context {
            format!("{tokens} leave no room in a context of {context}; shorten it")
        } else if tokens.least() >= capacity {
            format!(
                "{tokens}, but the cache holds {capacity}; shorten it or allow longer sequences"
            )
        } else {
            return Ok(());
        };
        Err(Error::argument("prompt", problem))
    }

    fn check_pictures(&self, geometry: Option<PictureGeometry>) -> Result<()> {
        let refuse = |problem: String| Err(Error::argument("pictures", problem));
        let Some(geometry) = geometry else {
            let text_only = "the model has no vision tower, or was loaded without it; send text \
                             alone";
            return if self.pictures.is_empty() { Ok(()) } else { refuse(text_only.into()) };
        };
        let mut end = 0;
        for picture in &self.pictures {
            let positions = picture.positions();
            let (from, to) = (positions.start as usize, positions.end as usize);
            let ids = self.prompt.get(from..to).filter(|_| positions.start >= end);
            if !ids.is_some_and(|ids| ids.iter().all(|id| *id == geometry.token)) {
                let token = geometry.token;
                return refuse(format!(
                    "positions {positions:?} are out of order or not all token {token}; place the \
                     pictures anew"
                ));
            }
            if !geometry.reads(&picture.input) {
                let most = geometry.tokens;
                return refuse(format!(
                    "a patch matrix that this model does not read, of a span of {} tokens (at \
                     most {most}); prepare it with the model's own limits",
                    positions.end - positions.start
                ));
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
