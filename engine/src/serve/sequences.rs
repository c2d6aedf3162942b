//! The sequence engine as the server's generator.

use std::collections::HashMap;

use super::generator::{Counts, Generator, GeneratorLimits, JobId, Load, PageCounts};
use super::job::{End, Failure, GeneratedToken, Job, Update};
use crate::Error;
use crate::exec::{Engine, FinishReason, Forward, Replay, Request, RequestId, What};

/// An [`Engine`] that runs jobs.
pub struct Sequences<F: Forward> {
    engine: Engine<F>,
    limits: GeneratorLimits,
    stop_ids: Vec<u32>,
    drafts: bool,
    requests: HashMap<JobId, RequestId>,
    jobs: HashMap<RequestId, JobId>,
}

impl<F: Forward> Sequences<F> {
    /// Over an engine; every reply ends at one of `stop_ids`, or of its job's own.
    pub fn new(engine: Engine<F>, stop_ids: Vec<u32>) -> Self {
        let options = engine.options();
        let limits = GeneratorLimits {
            context_tokens: engine.capacity_tokens(),
            vocabulary: clamp(engine.model().geometry().vocab),
            max_sequences: clamp(options.sequences),
            bounded_replay: options.resume_points > 0 && options.replay == Replay::Bounded,
            pictures: options.pictures > 0 && engine.model().geometry().pictures.is_some(),
        };
        let drafts = options.draft_tokens > 0;
        Self { engine, limits, stop_ids, drafts, requests: HashMap::new(), jobs: HashMap::new() }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine<F> {
        &self.engine
    }
}

impl<F: Forward> Generator for Sequences<F> {
    fn limits(&self) -> GeneratorLimits {
        self.limits
    }

    fn submit(&mut self, id: JobId, job: Job) -> Result<(), Failure> {
        let request = Request {
            prompt: job.prompt,
            pictures: job.pictures,
            sampling: job.sampling,
            form: job.form,
            stop_ids: [&self.stop_ids[..], &job.stop_ids].concat(),
            max_tokens: Some(job.max_tokens),
            drafts: self.drafts && job.drafts,
            client: job.client,
            cache_salt: job.cache_salt,
        };
        let request = self.engine.add(request).map_err(|error| match error {
            Error::Argument { argument, problem } => Failure::Refused { argument, problem },
            error => Failure::Faulted(error.to_string()),
        })?;
        self.requests.insert(id, request);
        self.jobs.insert(request, id);
        Ok(())
    }

    fn cancel(&mut self, id: JobId) {
        if let Some(request) = self.requests.remove(&id) {
            self.jobs.remove(&request);
            self.engine.cancel(request);
        }
    }

    fn step(&mut self, updates: &mut Vec<(JobId, Update)>) -> crate::Result<()> {
        for event in self.engine.step()? {
            // A cancelled request says so to nobody.
            let Some(&job) = self.jobs.get(&event.request) else { continue };
            match event.what {
                What::Started { cached_tokens } => {
                    updates.push((job, Update::Started { cached_tokens }));
                }
                What::Token { id, log_probs, drafts } => {
                    add_token(updates, job, GeneratedToken { id, log_probs, drafts });
                }
                What::Finished { reason, .. } => {
                    self.jobs.remove(&event.request);
                    self.requests.remove(&job);
                    updates.push((job, ending(reason)));
                }
            }
        }
        Ok(())
    }

    fn load(&self) -> Load {
        Load {
            running: self.engine.running() as u64,
            waiting: self.engine.waiting() as u64,
            free_pages: self.engine.free_pages().compressed,
        }
    }

    fn counts(&self) -> Counts {
        let (total, free) = self.engine.pool_pages();
        let pages = |total, free, cached| PageCounts { total, free, cached };
        let (cached, cached_windows) = self.engine.cached_pages();
        Counts {
            work: self.engine.work(),
            prefix: self.engine.prefix_counts(),
            replays: self.engine.model().replays(),
            draft_tokens: self.engine.options().draft_tokens,
            pages: [
                pages(total.compressed, free.compressed, cached),
                pages(total.window, free.window, cached_windows),
                pages(total.open, free.open, 0),
            ],
        }
    }

    fn save(&mut self) -> crate::Result<bool> {
        match self.engine.save_prefixes() {
            Err(error @ (Error::Io { .. } | Error::File { .. })) => {
                tracing::warn!("prefixes are kept no longer: {error}");
                Ok(false)
            }
            saved => saved,
        }
    }

    fn check(&self) -> crate::Result<()> {
        self.engine.check()
    }

    fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }
}

/// Tokens that a job got in one step travel together.
fn add_token(updates: &mut Vec<(JobId, Update)>, job: JobId, token: GeneratedToken) {
    match updates.last_mut() {
        Some((last, Update::Tokens(tokens))) if *last == job => tokens.push(token),
        _ => updates.push((job, Update::Tokens(vec![token]))),
    }
}

fn ending(reason: FinishReason) -> Update {
    match reason {
        FinishReason::Stop(_) => Update::Ended(End::StopToken),
        FinishReason::Length => Update::Ended(End::Limit),
        FinishReason::NotANumber => Update::Failed(Failure::Faulted(
            "the model's logits for this request were no numbers; other requests are not affected"
                .to_owned(),
        )),
        FinishReason::FormLost => Update::Failed(Failure::Faulted(
            "the form of the answer could not be followed further; simplify it".to_owned(),
        )),
        FinishReason::Cancelled => {
            Update::Failed(Failure::Faulted("the engine ended this request".to_owned()))
        }
    }
}

/// Counts beyond 32 bits do not occur; the largest stands for them.
fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
