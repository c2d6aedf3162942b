//! Requests in, events out.

mod kept_prefixes;
mod step;

use super::pace::Pace;
use super::picture_pool::PicturePool;
use super::queue::Queue;
use super::schedule::{Schedule, Turn};
use super::sequence::Sequence;
use super::{
    DraftSource, EngineOptions, Event, FinishReason, Forward, Geometry, Proposer, Request,
    RequestId, StepLists, Work,
};
use crate::error::{Error, Result};
use crate::kv::{PagePools, PoolPages, PrefixCache, PrefixCounts, PrefixStore, SequencePages};
use crate::sample::Draws;
use crate::spec::{Dspark, Ngram};
use crate::text::TokenCount;
use std::time::{Duration, Instant};

/// Tells the time since some moment, for measuring steps.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

/// Runs many requests over one model, step by step.
///
/// Requests start in the order they came, fair among clients. A step computes the next token of
/// every running request, with its drafts, and fills the rest of its rows with prompt tokens of the
/// others, as far as its time goes. A request starts when there are pages for its tokens; those for
/// its answer come as it grows. When they run out the youngest running request is set back and
/// computed again later; the
/// oldest never is, so every accepted request ends. What a request answers depends on nothing but
/// itself, given a model whose rows are independent.
pub struct Engine<F: Forward> {
    model: F,
    geometry: Geometry,
    options: EngineOptions,
    pools: PagePools,
    /// `None` when nothing is drafted.
    proposer: Option<Box<dyn Proposer<F>>>,
    /// Without resume points it stays empty.
    cache: PrefixCache,
    /// Where the prefix cache is kept for the next process, if anywhere.
    store: Option<PrefixStore>,
    pictures: PicturePool,
    waiting: Queue,
    /// Oldest first; all younger ones wait.
    running: Vec<Sequence>,
    requests: u64,
    events: Vec<Event>,
    work: Work,
    pace: Pace,
    clock: Clock,
    /// The last step's, for their room, and where the next step is alike for what they hold.
    schedule: Schedule,
    lists: StepLists,
    /// Whether the last step was one token of each request, and these are the ones that run.
    repeats: bool,
}

impl<F: Forward> Engine<F> {
    /// Over `model`, whose caches have [`EngineOptions::pool_pages`].
    ///
    /// # Errors
    /// [`Error::Argument`] when the limits do not go together.
    pub fn new(model: F, options: EngineOptions) -> Result<Self> {
        let start = Instant::now();
        Self::with_clock(model, options, Box::new(move || start.elapsed()))
    }

    /// As [`Engine::new`], measuring steps by another clock.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_clock(model: F, options: EngineOptions, clock: Clock) -> Result<Self> {
        let mut geometry = model.geometry().clone();
        options.check(&geometry)?;
        if !options.skip_upper_half {
            geometry.upper = None;
        }
        let pools = PagePools::new(options.pool_pages(&geometry));
        let scratch = pools.scratch(options.scratch_tokens(&geometry));
        let invariant = |error| Error::Internal { invariant: format!("{error}") };
        let scratch = scratch.map_err(invariant)?;
        let proposer = (options.draft_tokens > 0).then(|| match options.drafts {
            DraftSource::Dspark => {
                Box::new(Dspark::new(&geometry, &options, scratch)) as Box<dyn Proposer<F>>
            }
            DraftSource::Ngram => Box::new(Ngram::default()),
        });
        Ok(Self {
            proposer,
            cache: PrefixCache::new(options.kept_windows()),
            store: None,
            pictures: PicturePool::new(&options, &geometry),
            model,
            geometry,
            options,
            pools,
            waiting: Queue::default(),
            running: Vec::new(),
            requests: 0,
            events: Vec::new(),
            work: Work::default(),
            pace: Pace::default(),
            clock,
            schedule: Schedule::default(),
            lists: StepLists::default(),
            repeats: false,
        })
    }

    /// Tokens that a request may have, prompt and answer together.
    pub fn capacity_tokens(&self) -> u64 {
        self.options.capacity_tokens(&self.geometry)
    }

    /// Whether a prompt of so many tokens leaves room for an answer: a prompt that is surely too
    /// long need not be encoded.
    ///
    /// # Errors
    /// [`Error::Argument`] as [`Engine::add`] has it for such a prompt.
    pub fn check_length(&self, tokens: TokenCount) -> Result<()> {
        Request::check_length(tokens, &self.geometry, &self.options)
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`Error::Argument`] when it could never run; nothing is queued then.
    pub fn add(&mut self, request: Request) -> Result<RequestId> {
        let capacity = self.capacity_tokens();
        request.check(&self.geometry, &self.options)?;
        let (id, seed) = (RequestId(self.requests), self.options.seed);
        self.requests += 1;
        let draws = match request.sampling.seed {
            Some(seed) => Draws::new(seed),
            None => Draws::unseeded(seed, id.0),
        };
        let limit = request.limit_tokens(capacity);
        let (pools, geometry) = (&self.pools, &self.geometry);
        self.waiting.push(Sequence::new(id, request, limit, draws, pools, geometry));
        Ok(id)
    }

    /// Ends a request and gives its pages back at once; its last event comes with the next step.
    /// Answers whether there was one.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        self.repeats = false;
        let running = self.running.iter().position(|sequence| sequence.id == id);
        let sequence = match running {
            Some(at) => Some(self.running.remove(at)),
            None => self.waiting.remove(id),
        };
        let Some(mut sequence) = sequence else { return false };
        if sequence.has_shared() {
            sequence.share(&mut self.cache, true);
        }
        sequence.release_pictures(u64::MAX, &mut self.pictures);
        if let Some(proposer) = &mut self.proposer {
            proposer.forget(id);
        }
        self.events.push(sequence.finished(FinishReason::Cancelled));
        true
    }

    /// Runs one step and reports what came of it. Without requests it does nothing.
    ///
    /// # Errors
    /// When the device fails. No token of the step counts, the requests are as before, and events
    /// that were due come with the next step.
    pub fn step(&mut self) -> Result<Vec<Event>> {
        self.admit();
        let mut schedule = std::mem::take(&mut self.schedule);
        let ran = self.run(&mut schedule);
        self.schedule = schedule;
        ran?;
        // About as many come next time.
        let room = Vec::with_capacity(self.events.len());
        Ok(std::mem::replace(&mut self.events, room))
    }

    fn run(&mut self, schedule: &mut Schedule) -> Result<()> {
        self.repeats = self.repeats && self.begin_again(schedule);
        if !self.repeats {
            schedule.clear();
            self.share_out(schedule)?;
        }
        if schedule.is_empty() {
            return Ok(());
        }
        let started = (self.clock)();
        let again = (self.running.len() as u64, 0);
        let (decoding, prompt_rows) = if self.repeats { again } else { schedule.rows() };
        self.work.prompt_rows += prompt_rows;
        match self.compute(schedule) {
            Ok(sampled) => self.settle(schedule, sampled),
            Err(error) => {
                self.undo(schedule);
                return Err(error);
            }
        }
        self.draft()?;
        let step_us = (self.clock)().saturating_sub(started).as_secs_f64() * 1e6;
        self.pace.note(decoding, prompt_rows, step_us);
        Ok(())
    }

    /// Whether there is nothing to run and nothing to report.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty() && self.events.is_empty()
    }

    /// Requests that run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Pages that no request holds. Compressed pages that the prefix cache alone holds are free:
    /// they go when they are wanted.
    pub fn free_pages(&self) -> PoolPages {
        let free = self.pools.free();
        PoolPages { compressed: free.compressed + self.cache.idle_pages(), ..free }
    }

    /// Compressed pages that the prefix cache alone holds, and window pages that it holds, whether or not a
    /// request reads them too.
    pub fn cached_pages(&self) -> (u64, u64) {
        (self.cache.idle_pages(), self.cache.held_windows())
    }

    /// Pages of each pool, but for those that drafts alone use, and of these how many nobody owns.
    pub fn pool_pages(&self) -> (PoolPages, PoolPages) {
        let all = self.options.pool_pages(&self.geometry);
        let scratch = self.proposer.as_ref().map_or(0, |proposer| proposer.scratch().len() as u64);
        (PoolPages { window: all.window - scratch, ..all }, self.pools.free())
    }

    /// What the prefix cache did.
    pub fn prefix_counts(&self) -> PrefixCounts {
        self.cache.counts()
    }

    /// Pictures for whose rows there is room.
    pub fn free_pictures(&self) -> u64 {
        self.pictures.free()
    }

    /// Work so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Its limits.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The model.
    pub fn model(&self) -> &F {
        &self.model
    }

    /// The model alone, and the limits it was made for. Requests are dropped.
    pub fn into_model(self) -> (F, EngineOptions) {
        (self.model, self.options)
    }

    /// The pages of a running request.
    pub fn pages(&self, id: RequestId) -> Option<&SequencePages> {
        self.running.iter().find(|sequence| sequence.id == id).map(|sequence| &sequence.pages)
    }

    /// Whether every page, and the room of every picture, is free or owned once.
    ///
    /// # Errors
    /// [`Error::Internal`] naming the page.
    pub fn check(&self) -> Result<()> {
        let sequences = self.running.iter().chain(self.waiting.iter());
        let held: u64 = sequences.clone().map(Sequence::held_pictures).sum();
        let invariant = |invariant| Error::Internal { invariant };
        let pictures = self.geometry.pictures.map_or(0, |_| self.options.pictures);
        if held + self.pictures.free() != pictures {
            return Err(invariant(format!(
                "{pictures} pictures are held or free, not {held} held"
            )));
        }
        let sequences = sequences.map(|sequence| &sequence.pages);
        let scratch = match &self.proposer {
            Some(proposer) => proposer.scratch(),
            None => &[],
        };
        self.pools.check(sequences, scratch, &self.cache).map_err(invariant)
    }

    /// Starts waiting requests, in order, while there is a place and the pages that running ones
    /// still need for their known tokens, and for the next few of each, leave enough.
    fn admit(&mut self) {
        if self.waiting.is_empty() || self.running.len() >= self.options.sequences as usize {
            return;
        }
        let mut promised = self.running.iter().map(Sequence::promised_pages).sum::<u64>();
        while self.running.len() < self.options.sequences as usize {
            let Some(next) = self.waiting.first_mut() else { return };
            if self.options.resume_points > 0 {
                let hit = self.cache.find(&next.prefix());
                next.resume(hit, &self.pools, (&self.geometry, self.options.replay));
            }
            let wanted = promised + next.missing_pages();
            let free = self.pools.compressed.free_pages();
            if wanted > free && wanted - free > self.cache.evict(wanted.saturating_sub(free)) {
                next.unload(&self.pools, &self.geometry);
                return;
            }
            promised += next.promised_pages();
            self.cache.note(next.tokens(), next.pages.tokens());
            self.events.extend(next.started());
            self.running.extend(self.waiting.pop());
            self.repeats = false;
        }
    }

    /// Shares out the rows of a step, has the pictures in them read and takes the pages they need.
    fn share_out(&mut self, schedule: &mut Schedule) -> Result<()> {
        let prompt_rows = self.options.step_us.map_or(u64::MAX, |us| self.pace.prompt_rows(us));
        let Self { model, pictures, options, .. } = self;
        let mut read = |input: &_, first_row| model.picture(input, first_row);
        let reach =
            |sequence: &mut Sequence, rows| sequence.read_pictures(rows, pictures, &mut read);
        let shares = Schedule::shares(&mut self.running, options, prompt_rows, reach)?;
        while schedule.turns.len() < self.running.len() {
            let at = schedule.turns.len();
            let sequence = &mut self.running[at];
            let (settled, due) = (shares[at], sequence.due_tokens());
            let rows = settled + sequence.drafts.len() as u64;
            match sequence.pages.begin(rows) {
                Ok(step) => {
                    let turn = Turn { settled, rows, due };
                    if turn.reaches_end() {
                        sequence.prepare_masks();
                    }
                    schedule.turns.push(turn);
                    schedule.steps.push(step);
                }
                Err(short) if self.cache.evict(short.wanted - short.free) > 0 => {}
                Err(_) if !sequence.drafts.is_empty() => sequence.drafts.clear(),
                Err(error) if at == 0 && self.running.len() == 1 => {
                    let invariant = format!("one request alone always fits, yet {error}");
                    return Err(Error::Internal { invariant });
                }
                Err(_) => self.set_back_youngest(),
            }
        }
        schedule.close();
        Ok(())
    }

    /// Takes the pages of a step with the turns of the last one, and brings the lists on by it: both
    /// in one pass, as requests are more memory than caches hold. Answers whether that will do; if
    /// not, nothing is taken, and the lists are to be filled anew.
    fn begin_again(&mut self, schedule: &mut Schedule) -> bool {
        for (row, sequence) in self.running.iter_mut().enumerate() {
            match sequence.pages.begin(1) {
                Ok(step) if self.lists.holds(&sequence.pages) => {
                    sequence.prepare_masks();
                    schedule.steps.push(step);
                    self.lists.advance(row, &sequence.chunk(1, &self.geometry));
                }
                Ok(step) => {
                    sequence.pages.commit(step, 0);
                    break;
                }
                Err(_) => break,
            }
        }
        let begun = schedule.steps.len() == self.running.len();
        if !begun {
            self.undo(schedule);
        }
        begun
    }

    /// The youngest is last, so no turn of this step is touched.
    fn set_back_youngest(&mut self) {
        if let Some(mut youngest) = self.running.pop() {
            if youngest.has_shared() {
                youngest.share(&mut self.cache, true);
            }
            youngest.release_pictures(u64::MAX, &mut self.pictures);
            self.work.replayed_tokens += youngest.pages.tokens();
            youngest.set_back(&self.pools, &self.geometry);
            self.waiting.push_front(youngest);
            self.work.restarts += 1;
        }
    }
}
