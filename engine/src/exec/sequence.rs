//! A request that runs.

use super::chunk::{Chunk, PictureSpan};
use super::picture_pool::PicturePool;
use super::{
    Anchor, Drafter, Event, FinishReason, Geometry, LogProbs, PromptPicture, Request, RequestId,
    Sample, Sampled, Usage, What,
};
use crate::error::Result;
use crate::kv::{PAGE_TOKENS, PagePools, SequencePages};
use crate::sample::Draws;
use crate::vision::PictureInput;

/// A request with its tokens and its pages.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) request: Request,
    /// Tokens to generate at most.
    limit_tokens: u64,
    /// Prompt and generated tokens. The last one is not computed yet.
    tokens: Vec<u32>,
    pub(super) pages: SequencePages,
    upper_from: u64,
    /// The spans of the request's pictures.
    pictures: Vec<PictureSpan>,
    pub(super) draws: Draws,
    /// Guesses of the next tokens, and which sequence of the last draft made them.
    pub(super) drafts: Vec<u32>,
    pub(super) draft_slot: u64,
    /// Whether the last step sampled its last token. A draft's context is whole only then: at the
    /// last token of a prompt whose upper half was skipped it is one position short.
    sampled: bool,
    usage: Usage,
}

impl Sequence {
    pub(super) fn new(
        id: RequestId,
        request: Request,
        limit_tokens: u64,
        draws: Draws,
        pools: &PagePools,
        geometry: &Geometry,
    ) -> Self {
        let tokens = request.prompt.clone();
        let usage = Usage { prompt_tokens: tokens.len() as u64, ..Usage::default() };
        let span = |picture: &PromptPicture| {
            let start = picture.start;
            PictureSpan { start, tokens: picture.input.span.tokens(), first_row: None }
        };
        Self {
            pictures: request.pictures.iter().map(span).collect(),
            upper_from: geometry.upper_from(tokens.len() as u64),
            pages: SequencePages::new(pools, geometry.window_tokens),
            drafts: Vec::new(),
            draft_slot: 0,
            sampled: false,
            id,
            request,
            limit_tokens,
            tokens,
            draws,
            usage,
        }
    }

    /// Settled tokens that are not computed yet; 1 when the sequence decodes.
    pub(super) fn due_tokens(&self) -> u64 {
        self.tokens.len() as u64 - self.pages.tokens()
    }

    /// Settled tokens.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Tokens that may still be generated.
    pub(super) fn room_tokens(&self) -> u64 {
        self.limit_tokens - self.usage.generated_tokens
    }

    /// Compressed pages that its settled tokens still need.
    pub(super) fn missing_pages(&self) -> u64 {
        let held = self.pages.table().len() as u64;
        self.tokens().div_ceil(PAGE_TOKENS).saturating_sub(held)
    }

    /// Drafts that the next step may verify, up to `limit_tokens`.
    pub(super) fn drafts_wanted(&self, limit_tokens: u64) -> u64 {
        let drafts = self.request.drafts && self.sampled;
        if drafts { limit_tokens.min(self.room_tokens() - 1) } else { 0 }
    }

    /// Where a draft starts: the token that is sampled but not computed.
    pub(super) fn anchor(&self) -> Anchor<'_> {
        let last = self.tokens.last();
        let id = *last.expect("a sequence has a prompt of at least one token");
        Anchor { id, pages: &self.pages }
    }

    /// How a draft is drawn.
    pub(super) fn drafter(&self) -> Drafter {
        let temperature = self.request.sampling.temperature;
        Drafter { position: self.tokens(), temperature, draws: self.draws }
    }

    /// The next `settled` tokens, and after the last of them the drafts.
    pub(super) fn chunk(&self, settled: u64, geometry: &Geometry) -> Chunk<'_> {
        let start = self.pages.tokens();
        let drafts = self.drafts.len() as u64;
        Chunk {
            pages: &self.pages,
            known: &self.tokens,
            drafts: &self.drafts,
            start,
            end: start + settled + drafts,
            upper_from: self.upper_from,
            pictures: &self.pictures,
            window_tokens: geometry.window_tokens,
            history_tokens: geometry.history_tokens,
        }
    }

    /// Has the pictures read that its next `rows` rows reach into, as far as `pool` has room; `read`
    /// is given each with its first row. Returns how many of the rows can be computed.
    ///
    /// # Errors
    /// Those of `read`; that picture holds no room then.
    pub(super) fn read_pictures(
        &mut self,
        rows: u64,
        pool: &mut PicturePool,
        read: &mut impl FnMut(&PictureInput, u64) -> Result<()>,
    ) -> Result<u64> {
        let start = self.pages.tokens();
        for (span, picture) in self.pictures.iter_mut().zip(&self.request.pictures) {
            let positions = span.positions();
            let reached = positions.start < start + rows && start < positions.end;
            if !reached || span.first_row.is_some() {
                continue;
            }
            let Some(first_row) = pool.take() else {
                return Ok(positions.start.saturating_sub(start));
            };
            if let Err(error) = read(&picture.input, first_row) {
                pool.give(first_row);
                return Err(error);
            }
            span.first_row = Some(first_row);
        }
        Ok(rows)
    }

    /// Gives back the room of the pictures whose spans end by `position`.
    pub(super) fn release_pictures(&mut self, position: u64, pool: &mut PicturePool) {
        for span in self.pictures.iter_mut().filter(|span| span.positions().end <= position) {
            if let Some(first_row) = span.first_row.take() {
                pool.give(first_row);
            }
        }
    }

    /// Pictures whose rows it holds.
    pub(super) fn held_pictures(&self) -> u64 {
        self.pictures.iter().filter(|span| span.first_row.is_some()).count() as u64
    }

    /// What is wanted of its last rows.
    pub(super) fn sample(&self) -> Sample<'_> {
        let (prompt, generated) = self.tokens.split_at(self.request.prompt.len());
        Sample {
            drafts: &self.drafts,
            draft_slot: self.draft_slot,
            parameters: &self.request.sampling,
            draws: self.draws,
            position: self.tokens(),
            prompt,
            generated,
        }
    }

    /// Takes over what a step sampled: reports tokens up to a stop id or the limit. Returns how
    /// many tokens were taken, and why the answer is over if it is.
    pub(super) fn accept(
        &mut self,
        sampled: Sampled,
        events: &mut Vec<Event>,
    ) -> (u64, Option<FinishReason>) {
        let drafts = std::mem::take(&mut self.drafts);
        let accepted = &drafts[..sampled.accepted as usize];
        let mut log_probs = sampled.log_probs.into_iter();
        let (mut taken, mut finish) = (0, None);
        for token in accepted.iter().copied().map(Some).chain([sampled.token]) {
            finish = match token {
                Some(token) => self.take(token, log_probs.next(), events),
                None => Some(FinishReason::NotANumber),
            };
            taken += u64::from(token.is_some());
            if finish.is_some() {
                break;
            }
        }
        let drafted = drafts.len() as u64;
        self.usage.drafted_tokens += if finish.is_some() { taken.min(drafted) } else { drafted };
        self.usage.accepted_tokens += taken.min(sampled.accepted);
        self.sampled = true;
        (taken, finish)
    }

    fn take(
        &mut self,
        token: u32,
        log_probs: Option<LogProbs>,
        events: &mut Vec<Event>,
    ) -> Option<FinishReason> {
        self.tokens.push(token);
        self.usage.generated_tokens += 1;
        if self.request.stop_ids.contains(&token) {
            return Some(FinishReason::Stop(token));
        }
        events.push(Event { request: self.id, what: What::Token { id: token, log_probs } });
        (self.room_tokens() == 0).then_some(FinishReason::Length)
    }

    /// Gives all pages back; what was generated is computed again as if it were prompt. Draws are
    /// keyed by position, so the answer goes on as it would have.
    pub(super) fn set_back(&mut self, pools: &PagePools, geometry: &Geometry) {
        self.pages = SequencePages::new(pools, geometry.window_tokens);
        self.upper_from = geometry.upper_from(self.tokens());
        self.drafts.clear();
        self.sampled = false;
        self.usage.restarts += 1;
    }

    /// The event that ends it.
    pub(super) fn finished(&self, reason: FinishReason) -> Event {
        Event { request: self.id, what: What::Finished { reason, usage: self.usage } }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }
}
