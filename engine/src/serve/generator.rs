//! What generates: the narrow view that the server has of the engine.

use super::job::{Failure, Job, Update};
use crate::exec::Work;
use crate::kv::PrefixCounts;

/// Names a job for as long as it lives; never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct JobId(pub u64);

/// Bounds that hold for every job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GeneratorLimits {
    /// Most tokens of a prompt and its reply together: the least of what the model can address and
    /// what the caches can hold, so a job within it always finds room when it is alone.
    pub context_tokens: u64,
    /// Ids of the vocabulary.
    pub vocabulary: u32,
    /// Sequences that run side by side.
    pub max_sequences: u32,
    /// Prompts may have pictures.
    pub pictures: bool,
    /// Windows behind cached prefixes are computed from one window back: an answer may differ from what
    /// it is without a cache.
    pub bounded_replay: bool,
}

/// What the engine is busy with.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// Jobs that generate.
    pub running: u64,
    /// Jobs that wait for their turn.
    pub waiting: u64,
    /// Cache pages that nobody holds.
    pub free_pages: u64,
}

/// What the engine did since its start, and how full its caches are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Steps and what they did.
    pub work: Work,
    /// What the prefix cache did.
    pub prefix: PrefixCounts,
    /// Steps and drafts that ran as captured.
    pub replays: u64,
    /// Drafts of a step at most.
    pub draft_tokens: u64,
    /// Pages of compressed entries, of windows and of open groups.
    pub pages: [PageCounts; 3],
}

/// Pages of one pool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PageCounts {
    /// All.
    pub total: u64,
    /// Nobody owns these.
    pub free: u64,
    /// The prefix cache alone holds these; they go when they are wanted.
    pub cached: u64,
}

impl PageCounts {
    /// Pages that sequences, or points to resume from, hold.
    pub fn used(&self) -> u64 {
        self.total.saturating_sub(self.free + self.cached)
    }
}

/// Runs jobs, batched together. One thread owns it and calls it.
pub trait Generator {
    /// The bounds; they never change.
    fn limits(&self) -> GeneratorLimits;

    /// Takes a job. It is queued when there is no room for it yet.
    ///
    /// # Errors
    /// Why this job can never run; it is forgotten and costs nothing.
    fn submit(&mut self, id: JobId, job: Job) -> Result<(), Failure>;

    /// Forgets a job and frees all that it holds. Nothing for a job that is over or unknown.
    fn cancel(&mut self, id: JobId);

    /// One step of all jobs that run; appends what happened to them. Jobs are independent: what
    /// goes wrong with one is its [`Update::Failed`], not an error.
    ///
    /// # Errors
    /// The engine cannot go on; all its jobs are lost.
    fn step(&mut self, updates: &mut Vec<(JobId, Update)>) -> crate::Result<()>;

    /// What it is busy with.
    fn load(&self) -> Load;

    /// What it did and holds; asked after each step, so it allocates nothing.
    fn counts(&self) -> Counts;

    /// Whether its accounts of the memory it shares out hold; asked when it has been idle a while.
    ///
    /// # Errors
    /// What does not; it is not to be trusted further.
    fn check(&self) -> crate::Result<()> {
        Ok(())
    }

    /// Saves a slice of what should outlive the process; asked again and again while nothing else is to
    /// be done. Answers whether there is more.
    ///
    /// # Errors
    /// As [`Generator::step`].
    fn save(&mut self) -> crate::Result<bool> {
        Ok(false)
    }

    /// True when no job is running or waiting: a step would do nothing.
    fn is_idle(&self) -> bool {
        let load = self.load();
        load.running == 0 && load.waiting == 0
    }
}
