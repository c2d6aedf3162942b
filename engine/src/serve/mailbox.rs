//! The way to the engine's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tokio::sync::{mpsc, oneshot, watch};

use super::admission::{Permit, WaitingTokens};
use super::desk::{Desk, EngineThread, Shared};
use super::generation::Generation;
use super::generator::{Counts, Generator, GeneratorLimits, JobId, Load};
use super::job::{Job, Update};
use super::metrics::{EnginePage, Meters};
use super::reopening::Reopen;
use crate::Error;

/// What the engine's thread is asked to do.
pub(super) enum Command {
    /// Run a job.
    Submit(Box<Submitted>),
    /// Forget a job.
    Cancel(JobId),
    /// Fail every job.
    Abort,
    /// Save what is to outlive the process, and say so.
    Save(oneshot::Sender<()>),
}

/// A job on its way to the engine.
pub(super) struct Submitted {
    pub(super) id: JobId,
    pub(super) job: Job,
    /// When its request was let in.
    pub(super) admitted: Instant,
    /// To be let go when its prefill begins.
    pub(super) waiting: Arc<WaitingTokens>,
    /// Where its updates go.
    pub(super) updates: mpsc::UnboundedSender<Update>,
}

/// The way to the engine's thread. The thread ends when the last handle and the last
/// [`Generation`] are gone.
#[derive(Clone, Debug)]
pub struct EngineHandle {
    inbox: Sender<Command>,
    next_id: Arc<AtomicU64>,
    limits: GeneratorLimits,
    page: EnginePage,
    meters: Arc<Meters>,
    /// Why the thread ended, when it knew.
    fault: Arc<Mutex<Option<Error>>>,
    /// False while the device is opened again.
    is_open: Arc<AtomicBool>,
    /// Closed when the thread has ended.
    alive: watch::Receiver<()>,
}

impl EngineHandle {
    /// Starts the thread. It ends when the device is lost.
    ///
    /// # Errors
    /// [`crate::Error::Io`] when the system gives no thread.
    pub fn spawn(generator: impl Generator + Send + 'static) -> crate::Result<Self> {
        Self::start(generator, None)
    }

    /// Starts the thread. When the device is lost, the jobs that it had fail, and it goes on with what
    /// `reopen` gives, which is told why and called when the lost generator is dropped. It ends when that
    /// fails several times without a step between.
    ///
    /// # Errors
    /// As [`EngineHandle::spawn`].
    pub fn spawn_reopening<G: Generator + Send + 'static>(
        generator: G,
        reopen: impl FnMut(&Error) -> crate::Result<G> + Send + 'static,
    ) -> crate::Result<Self> {
        Self::start(generator, Some(Box::new(reopen)))
    }

    fn start<G: Generator + Send + 'static>(
        generator: G,
        reopen: Option<Reopen<G>>,
    ) -> crate::Result<Self> {
        let (handle, thread) = Self::beside(generator, reopen);
        let builder = thread::Builder::new().name("engine".to_owned());
        let path = || "the engine's thread".to_owned();
        builder.spawn(move || thread.run()).map_err(|source| Error::Io {
            action: "start",
            path: path(),
            source,
        })?;
        Ok(handle)
    }

    /// The handle, and what the thread runs.
    pub(super) fn beside<G: Generator>(
        generator: G,
        reopen: Option<Reopen<G>>,
    ) -> (Self, EngineThread<G, Receiver<Command>>) {
        let (inbox, commands) = unbounded();
        let (alive_sender, alive) = watch::channel(());
        let limits = generator.limits();
        let page = EnginePage::default();
        let meters = Arc::new(Meters::new(page.clone()));
        let fault = Arc::default();
        let is_open = Arc::new(AtomicBool::new(true));
        let desk = Desk::new(
            generator,
            Shared {
                page: page.clone(),
                meters: Arc::clone(&meters),
                fault: Arc::clone(&fault),
                is_open: Arc::clone(&is_open),
            },
        );
        let thread = EngineThread { desk, commands, reopen, _alive: alive_sender };
        let next_id = Arc::default();
        (Self { inbox, next_id, limits, page, meters, fault, is_open, alive }, thread)
    }

    /// Bounds that hold for every job.
    pub fn limits(&self) -> GeneratorLimits {
        self.limits
    }

    /// What the engine was busy with after its last step.
    pub fn load(&self) -> Load {
        self.page.last().0
    }

    /// What it did until then.
    pub fn counts(&self) -> Counts {
        self.page.last().1
    }

    /// What is counted of its jobs.
    pub(super) fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// Why the thread ended; nothing, the second time, and when it panicked.
    pub(super) fn take_fault(&self) -> Option<Error> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// False once the engine's thread has ended.
    pub fn is_alive(&self) -> bool {
        self.alive.has_changed().is_ok()
    }

    /// False while a lost device is opened again: jobs wait for it then.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Returns when the engine's thread has ended.
    pub async fn stopped(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// Sends a job. Dropping the generation cancels it. `permit` is held as long as it lives;
    /// the replies to one request share one. `waiting`, which they share too, is held until its
    /// prefill begins.
    pub fn submit(&self, job: Job, permit: Arc<Permit>, waiting: Arc<WaitingTokens>) -> Generation {
        let id = JobId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, updates) = mpsc::unbounded_channel();
        // When the thread is gone the sender is dropped here and the generation says so.
        let submitted = Submitted { id, job, admitted: permit.since(), waiting, updates: sender };
        let _ = self.inbox.send(Command::Submit(Box::new(submitted)));
        Generation::new(id, updates, self.inbox.clone(), permit)
    }

    /// Fails every job that is under way.
    pub fn abort(&self) {
        // A thread that is gone has no jobs.
        let _ = self.inbox.send(Command::Abort);
    }

    /// Returns when all that is to outlive the process is saved, or nobody is left to save it: a lost
    /// device has nothing, and to open it again may take minutes.
    pub async fn save(&self) {
        if !self.is_open() {
            return;
        }
        let (sender, saved) = oneshot::channel();
        let _ = self.inbox.send(Command::Save(sender));
        // An error is the engine's end, which tells of itself.
        let _ = saved.await;
    }
}
