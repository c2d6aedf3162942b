//! A request that runs.

use super::chunk::{Chunk, PictureSpan};
use super::picture_pool::PicturePool;
use super::{
    ClientId, DraftCounts, Drafter, Drafting, Event, FinishReason, Geometry, LogProbs,
    PromptPicture, Replay, Request, RequestId, Sample, Sampled, Usage, What,
};
use crate::error::Result;
use crate::grammar::{Constraint, Grammar};
use crate::kv::{
    BlockId, PAGE_TOKENS, PagePools, Prefix, PrefixCache, PrefixHit, PrefixPicture, SequencePages,
};
use crate::sample::Draws;
use crate::vision::PictureInput;

/// A request with its tokens and its pages.
// In this order, so that what every step asks lies side by side.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    /// Tokens to generate at most.
    limit_tokens: u64,
    /// Prompt and generated tokens. The last one is not computed yet.
    tokens: Vec<u32>,
    /// Guesses of the next tokens.
    pub(super) drafts: Vec<u32>,
    usage: Usage,
    pub(super) draws: Draws,
    /// Which sequence of the last draft made the drafts.
    pub(super) draft_slot: u64,
    /// Where others went on differently than before: a place to resume from, worth a window.
    fork: Option<u64>,
    /// Masks of what the answer is held to, of the next step.
    masks: Vec<u32>,
    /// The constraint failed: the answer cannot go on.
    form_lost: bool,
    /// Whether the last step sampled its last token. A draft's context is whole only then: at the
    /// last token of a prompt whose upper half was skipped it is one position short.
    sampled: bool,
    /// Whether since its last start it has shared what it computed.
    shared: bool,
    /// The spans of the request's pictures.
    pictures: Vec<PictureSpan>,
    pub(super) pages: SequencePages,
    /// What the answer is held to.
    constraint: Option<Constraint>,
    pub(super) request: Request,
    upper_from: u64,
    /// Its pictures as the prefix cache knows them.
    prefix_pictures: Vec<PrefixPicture>,
    /// Its blocks in the prefix cache.
    chain: Vec<BlockId>,
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
            prefix_pictures: request.pictures.iter().map(prefix_picture).collect(),
            chain: Vec::new(),
            shared: false,
            fork: None,
            upper_from: geometry.upper_from(tokens.len() as u64),
            pages: SequencePages::new(pools, geometry.window_tokens),
            constraint: request.form.as_ref().map(Grammar::start),
            masks: Vec::new(),
            form_lost: false,
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

    pub(super) fn client(&self) -> ClientId {
        self.request.client
    }

    /// Settled tokens that are not computed yet; 1 when the sequence decodes.
    pub(super) fn due_tokens(&self) -> u64 {
        self.tokens.len() as u64 - self.pages.tokens()
    }

    /// Settled tokens that the next step may compute: a fork ends a step.
    pub(super) fn step_tokens(&self) -> u64 {
        let left = self.fork.and_then(|fork| fork.checked_sub(self.pages.tokens()));
        self.due_tokens().min(left.filter(|left| *left > 0).unwrap_or(u64::MAX))
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

    /// Those, and one more if it may outgrow them.
    pub(super) fn promised_pages(&self) -> u64 {
        let most = self.request.prompt.len() as u64 + self.limit_tokens;
        let grows = most.div_ceil(PAGE_TOKENS) > self.tokens().div_ceil(PAGE_TOKENS);
        self.missing_pages() + u64::from(grows)
    }

    /// Drafts that the next step may verify, up to `limit_tokens`.
    pub(super) fn drafts_wanted(&self, limit_tokens: u64) -> u64 {
        let drafts = self.request.drafts && self.sampled;
        if drafts { limit_tokens.min(self.room_tokens() - 1) } else { 0 }
    }

    /// What drafts, up to `limit_tokens`, can be made from.
    pub(super) fn drafting(&self, limit_tokens: u64) -> Drafting<'_> {
        let temperature = self.request.sampling.temperature;
        let drafter = Drafter { position: self.tokens(), temperature, draws: self.draws };
        let (request, tokens, pages) = (self.id, self.tokens.as_slice(), &self.pages);
        Drafting { request, tokens, pages, drafter, wanted: self.drafts_wanted(limit_tokens) }
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
    #[inline]
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

    /// Works out which tokens may come at its last rows.
    pub(super) fn prepare_masks(&mut self) {
        self.masks.clear();
        if let Some(constraint) = &mut self.constraint
            && constraint.masks(&self.drafts, &mut self.masks).is_err()
        {
            self.masks.clear();
            self.form_lost = true;
        }
    }

    /// What is wanted of its last rows.
    pub(super) fn sample(&self) -> Sample<'_> {
        let (prompt, generated) = self.tokens.split_at(self.usage.prompt_tokens as usize);
        Sample {
            drafts: &self.drafts,
            draft_slot: self.draft_slot,
            parameters: &self.request.sampling,
            draws: self.draws,
            position: self.tokens(),
            prompt,
            generated,
            masks: &self.masks,
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
        if self.form_lost {
            return (0, Some(FinishReason::FormLost));
        }
        let accepted = sampled.accepted as usize;
        let rejected = (drafts.len() - accepted) as u32;
        let mut log_probs = sampled.log_probs.into_iter();
        let (mut taken, mut finish) = (0, None);
        for at in 0..=accepted {
            let (token, settles) = match drafts[..accepted].get(at) {
                Some(draft) => (Some(*draft), DraftCounts { accepted: 1, rejected: 0 }),
                None => (sampled.token, DraftCounts { accepted: 0, rejected }),
            };
            finish = match token {
                Some(token) => self.take(token, (log_probs.next(), settles), events),
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
        (log_probs, drafts): (Option<LogProbs>, DraftCounts),
        events: &mut Vec<Event>,
    ) -> Option<FinishReason> {
        self.tokens.push(token);
        self.usage.generated_tokens += 1;
        if self.request.stop_ids.contains(&token) {
            return Some(FinishReason::Stop(token));
        }
        events.push(Event { request: self.id, what: What::Token { id: token, log_probs, drafts } });
        if self.constraint.as_mut().is_some_and(|constraint| constraint.accept(token).is_err()) {
            return Some(FinishReason::FormLost);
        }
        (self.room_tokens() == 0).then_some(FinishReason::Length)
    }

    /// Gives all pages back; what was generated is computed again as if it were prompt. Draws are
    /// keyed by position, so the answer goes on as it would have.
    pub(super) fn set_back(&mut self, pools: &PagePools, geometry: &Geometry) {
        self.unload(pools, geometry);
        self.upper_from = geometry.upper_from(self.tokens());
        self.drafts.clear();
        self.sampled = false;
        self.usage.restarts += 1;
    }

    /// What the prefix cache is asked for.
    pub(super) fn prefix(&self) -> Prefix<'_> {
        let (tokens, salt) = (&self.tokens, &self.request.cache_salt);
        Prefix { tokens, pictures: &self.prefix_pictures, salt }
    }

    /// Takes over what the prefix cache has of it. Where pages match beyond the last resume point, the
    /// windows there are computed from as far back as they reach, if that is less than to compute
    /// everything from the resume point on; under a bound from one window back. A later request resumes from a whole page, so the upper
    /// half runs on what is needed there, a little more than the end of the prompt takes.
    pub(super) fn resume(
        &mut self,
        hit: PrefixHit,
        pools: &PagePools,
        (geometry, replay): (&Geometry, Replay),
    ) {
        let is_exact = replay == Replay::Exact;
        self.fork = (is_exact && hit.matched_tokens > hit.tokens).then_some(hit.matched_tokens);
        let from = match replay {
            Replay::Exact => geometry.replay_from(hit.matched_tokens),
            Replay::Bounded => hit.matched_tokens.saturating_sub(geometry.window_tokens),
        };
        let from = from / PAGE_TOKENS * PAGE_TOKENS;
        let mut hit = match from > hit.tokens || !is_exact {
            true => hit.from_position(from),
            false => hit.from_resume_point(),
        };
        self.chain = std::mem::take(&mut hit.chain);
        let end = (self.tokens() - 1) / PAGE_TOKENS * PAGE_TOKENS;
        self.upper_from = geometry.upper_from(self.fork.unwrap_or(end));
        self.pages = SequencePages::resumed(pools, geometry.window_tokens, hit);
    }

    /// Gives all pages back.
    pub(super) fn unload(&mut self, pools: &PagePools, geometry: &Geometry) {
        self.pages = SequencePages::new(pools, geometry.window_tokens);
        self.chain.clear();
        (self.shared, self.fork) = (false, None);
    }

    /// Takes note that it starts; the event that says so, unless it ran before.
    pub(super) fn started(&mut self) -> Option<Event> {
        if self.usage.restarts > 0 {
            return None;
        }
        let cached_tokens = self.pages.tokens();
        self.usage.cached_tokens = cached_tokens;
        Some(Event { request: self.id, what: What::Started { cached_tokens } })
    }

    /// Keeps the window at its fork when a step ended there.
    pub(super) fn keep_fork(&mut self) {
        if self.fork == Some(self.pages.tokens()) {
            self.pages.keep_windows();
        }
    }

    /// Shares what it computed with the prefix cache: whole pages, and windows at the ends of its
    /// prompt and its fork and, once it is over, at its own. Only for logits that are numbers: what
    /// led to others is nobody's prefix.
    pub(super) fn share(&mut self, cache: &mut PrefixCache, is_over: bool) {
        let computed = self.pages.tokens();
        let (tokens, salt) = (&self.tokens[..computed as usize], &self.request.cache_salt);
        let prefix = Prefix { tokens, pictures: &self.prefix_pictures, salt };
        while (self.chain.len() as u64 + 1) * PAGE_TOKENS <= computed {
            let (before, at) = (self.chain.last().copied(), self.chain.len());
            self.chain.push(self.pages.share(cache, before, &prefix, at));
        }
        if !std::mem::replace(&mut self.shared, true) {
            // The same prompt again has at least one token to compute.
            self.retain(cache, computed.saturating_sub(1));
            let windows = self.pages.take_kept();
            let fork = self.fork.take().and_then(|fork| fork.checked_sub(1));
            let block = fork.and_then(|last| self.chain.get((last / PAGE_TOKENS) as usize));
            if let Some(block) = block {
                cache.retain(*block, windows);
            }
        }
        if is_over {
            self.retain(cache, computed);
        }
    }

    /// Whether it has shared what it computed before.
    pub(super) fn has_shared(&self) -> bool {
        self.shared
    }

    /// Makes the last end of a page up to `position` a resume point.
    fn retain(&self, cache: &mut PrefixCache, position: u64) {
        let pages = position / PAGE_TOKENS;
        if let Some(last) = pages.checked_sub(1).and_then(|last| self.chain.get(last as usize)) {
            cache.retain(*last, self.pages.windows_before(pages * PAGE_TOKENS));
        }
    }

    /// The event that ends it.
    pub(super) fn finished(&self, reason: FinishReason) -> Event {
        Event { request: self.id, what: What::Finished { reason, usage: self.usage } }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }
}

fn prefix_picture(picture: &PromptPicture) -> PrefixPicture {
    PrefixPicture { positions: picture.positions(), digest: picture.input.patches.digest() }
}
