//! An engine that says what it is told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tandem_engine::exec::{DraftCounts, LogProbs};
use tandem_engine::serve::{
    Counts, End, Failure, GeneratedToken, Generator, GeneratorLimits, Job, JobId, Load, Update,
};
use tandem_engine::{Error, Result};

/// How a scripted reply goes on when its ids are used up.
#[derive(Clone, Debug)]
pub enum Then {
    /// The model ends its turn.
    Stop,
    /// It says the ids again, for ever.
    Again,
    /// This request fails.
    Fail(&'static str),
    /// The engine fails.
    Break,
    /// The engine's thread panics.
    Panic,
}

/// What the engine says to one job.
#[derive(Clone, Debug)]
pub struct Script {
    pub ids: Vec<u32>,
    pub then: Then,
    pub cached_tokens: u64,
}

impl Script {
    pub fn new(ids: Vec<u32>, then: Then) -> Self {
        Self { ids, then, cached_tokens: 0 }
    }
}

/// Chooses the script of a job.
pub type Director = Arc<dyn Fn(&Job) -> Script + Send + Sync>;

/// What happened on the stage.
#[derive(Debug, Default)]
pub struct Seen {
    pub jobs: Vec<Job>,
    pub cancelled: Vec<JobId>,
    /// Most jobs in one step.
    pub widest_step: usize,
    pub steps: u64,
}

/// The stage.
pub struct Scripted {
    pub limits: GeneratorLimits,
    pub director: Director,
    /// Tokens of a job in one step: more than one is what accepted drafts look like.
    pub tokens_per_step: usize,
    pub step_time: Duration,
    pub pages: u64,
    pub seen: Arc<Mutex<Seen>>,
    pub waiting: VecDeque<Playing>,
    pub running: Vec<Playing>,
}

/// A job on stage.
pub struct Playing {
    id: JobId,
    job: Job,
    script: Script,
    said: usize,
}

/// Tokens of a page.
const PAGE_TOKENS: u64 = 64;

impl Scripted {
    pub fn new(director: impl Fn(&Job) -> Script + Send + Sync + 'static) -> Self {
        Self {
            limits: GeneratorLimits {
                context_tokens: 4096,
                vocabulary: 2048,
                max_sequences: 8,
                pictures: false,
                bounded_replay: false,
            },
            director: Arc::new(director),
            tokens_per_step: 1,
            step_time: Duration::ZERO,
            pages: 1024,
            seen: Arc::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
        }
    }

    /// An engine that says `ids` to everyone and stops.
    pub fn saying(ids: Vec<u32>) -> Self {
        Self::new(move |_| Script::new(ids.clone(), Then::Stop))
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn admit(&mut self, updates: &mut Vec<(JobId, Update)>) {
        while self.running.len() < self.limits.max_sequences as usize {
            let Some(playing) = self.waiting.pop_front() else { return };
            let cached_tokens = playing.script.cached_tokens;
            updates.push((playing.id, Update::Started { cached_tokens }));
            self.running.push(playing);
        }
    }

    /// Advances a job; true when it is over.
    fn play(&self, playing: &mut Playing, updates: &mut Vec<(JobId, Update)>) -> Result<bool> {
        let mut tokens = Vec::new();
        let mut last = None;
        while tokens.len() < self.tokens_per_step && last.is_none() {
            if playing.said as u64 == playing.job.max_tokens {
                last = Some(Update::Ended(End::Limit));
                break;
            }
            let length = playing.script.ids.len();
            let at = match playing.script.then {
                Then::Again => playing.said % length,
                _ => playing.said,
            };
            if at < length {
                tokens.push(token(playing.script.ids[at], &playing.job));
                playing.said += 1;
                continue;
            }
            last = Some(match playing.script.then {
                Then::Fail(message) => Update::Failed(Failure::Faulted(message.to_owned())),
                Then::Break => return Err(Error::Internal { invariant: "it holds".to_owned() }),
                Then::Panic => panic!("a scripted panic"),
                Then::Stop | Then::Again => Update::Ended(End::StopToken),
            });
        }
        let is_over = last.is_some();
        if !tokens.is_empty() {
            updates.push((playing.id, Update::Tokens(tokens)));
        }
        updates.extend(last.map(|last| (playing.id, last)));
        Ok(is_over)
    }
}

/// A token with the log-probabilities of logits 2, 1, 0 when they are wanted.
fn token(id: u32, job: &Job) -> GeneratedToken {
    let top = [(id, -0.407_606), ((id + 1) % 2048, -1.407_606), ((id + 2) % 2048, -2.407_606)];
    let log_probs = job.sampling.log_probs.map(|count| LogProbs {
        chosen: top[0].1,
        top: top.into_iter().take(count as usize).collect(),
    });
    GeneratedToken { id, log_probs, drafts: DraftCounts { accepted: 0, rejected: 1 } }
}

impl Generator for Scripted {
    fn limits(&self) -> GeneratorLimits {
        self.limits
    }

    fn submit(&mut self, id: JobId, job: Job) -> std::result::Result<(), Failure> {
        self.seen().jobs.push(job.clone());
        if job.prompt.first() == Some(&7) {
            return Err(Failure::Refused {
                argument: "prompt".to_owned(),
                problem: "it begins with 7; begin it otherwise".to_owned(),
            });
        }
        let script = (self.director)(&job);
        self.waiting.push_back(Playing { id, job, script, said: 0 });
        Ok(())
    }

    fn cancel(&mut self, id: JobId) {
        self.seen().cancelled.push(id);
        self.waiting.retain(|playing| playing.id != id);
        self.running.retain(|playing| playing.id != id);
    }

    fn step(&mut self, updates: &mut Vec<(JobId, Update)>) -> Result<()> {
        std::thread::sleep(self.step_time);
        self.admit(updates);
        {
            let mut seen = self.seen();
            seen.steps += 1;
            seen.widest_step = seen.widest_step.max(self.running.len());
        }
        let mut running = std::mem::take(&mut self.running);
        let mut failed = None;
        running.retain_mut(|playing| match self.play(playing, updates) {
            Ok(is_over) => !is_over,
            Err(error) => {
                failed = Some(error);
                true
            }
        });
        self.running = running;
        failed.map_or(Ok(()), Err)
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn load(&self) -> Load {
        let held = |playing: &Playing| {
            (playing.job.prompt.len() as u64 + playing.said as u64).div_ceil(PAGE_TOKENS)
        };
        Load {
            running: self.running.len() as u64,
            waiting: self.waiting.len() as u64,
            free_pages: self.pages - self.running.iter().map(held).sum::<u64>(),
        }
    }
}
