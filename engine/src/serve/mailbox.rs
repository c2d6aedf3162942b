//! The engine's thread and its mailbox.
//!
//! One plain thread owns the generator: it takes jobs and cancellations out of the mailbox between
//! steps, and hands each job's updates to whoever submitted it. Nothing here ever waits for a
//! client: a job's queue holds at most its own tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tokio::sync::{mpsc, watch};

use super::admission::Permit;
use super::generation::Generation;
use super::generator::{Counts, Generator, GeneratorLimits, JobId, Load};
use super::job::{Failure, Job, Update};
use super::metrics::{EnginePage, JobClock, Meters};
use crate::Error;

/// How long the engine is idle before its accounts are checked.
const REST: Duration = Duration::from_secs(1);

/// What the engine's thread is asked to do.
pub(super) enum Command {
    /// Run a job of a request that was let in then, and send its updates here.
    Submit(JobId, Box<Job>, Instant, mpsc::UnboundedSender<Update>),
    /// Forget a job.
    Cancel(JobId),
    /// Fail every job.
    Abort,
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
    /// Closed when the thread has ended.
    alive: watch::Receiver<()>,
}

impl EngineHandle {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`crate::Error::Io`] when the system gives no thread.
    pub fn spawn(generator: impl Generator + Send + 'static) -> crate::Result<Self> {
        let (inbox, commands) = unbounded();
        let (alive_sender, alive) = watch::channel(());
        let limits = generator.limits();
        let page = EnginePage::default();
        let meters = Arc::new(Meters::new(page.clone()));
        let fault = Arc::default();
        let desk = Desk {
            generator,
            routes: HashMap::new(),
            page: page.clone(),
            counts: Counts::default(),
            meters: Arc::clone(&meters),
            fault: Arc::clone(&fault),
        };
        thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let _alive = alive_sender;
                desk.run(&commands);
            })
            .map_err(|source| crate::Error::Io {
                action: "start",
                path: "the engine's thread".to_owned(),
                source,
            })?;
        Ok(Self { inbox, next_id: Arc::default(), limits, page, meters, fault, alive })
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

    /// Returns when the engine's thread has ended.
    pub async fn stopped(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// Sends a job. Dropping the generation cancels it. `permit` is held as long as it lives;
    /// the replies to one request share one.
    pub fn submit(&self, job: Job, permit: Arc<Permit>) -> Generation {
        let id = JobId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, updates) = mpsc::unbounded_channel();
        // When the thread is gone the sender is dropped here and the generation says so.
        let _ = self.inbox.send(Command::Submit(id, Box::new(job), permit.since(), sender));
        Generation::new(id, updates, self.inbox.clone(), permit)
    }

    /// Fails every job that is under way.
    pub fn abort(&self) {
        // A thread that is gone has no jobs.
        let _ = self.inbox.send(Command::Abort);
    }
}

/// What the engine's thread has before it.
struct Desk<G> {
    generator: G,
    routes: HashMap<JobId, Route>,
    page: EnginePage,
    /// Published last.
    counts: Counts,
    meters: Arc<Meters>,
    /// Why nothing goes on.
    fault: Arc<Mutex<Option<Error>>>,
}

/// Where a job's updates go.
struct Route {
    updates: mpsc::UnboundedSender<Update>,
    clock: JobClock,
}

impl<G: Generator> Desk<G> {
    /// Works until nobody can ask for more, or the generator cannot go on.
    fn run(mut self, commands: &Receiver<Command>) {
        self.publish();
        if let Err(error) = self.work(commands) {
            let failure = Failure::from_engine(&error);
            // Before jobs hear of it, so that whoever asks then is told why.
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.fail_all(&failure);
        }
    }

    fn work(&mut self, commands: &Receiver<Command>) -> crate::Result<()> {
        let mut updates = Vec::new();
        loop {
            if self.generator.is_idle() {
                match self.rest(commands)? {
                    Some(command) => self.obey(command),
                    None => return Ok(()),
                }
            }
            for command in commands.try_iter() {
                self.obey(command);
            }
            let (start, before) = (Instant::now(), self.counts);
            if !self.generator.is_idle() {
                self.generator.step(&mut updates)?;
            }
            // Before the updates go out, so that whoever hears of an end sees its pages free.
            self.publish();
            let now = Instant::now();
            self.meters.steps().note(&before, &self.counts, now.duration_since(start));
            for (id, update) in updates.drain(..) {
                // What starts in a step starts with it.
                let starts = matches!(update, Update::Started { .. });
                self.deliver(id, update, if starts { start } else { now });
            }
        }
    }

    /// Waits for something to do, and looks once whether everything is in its place; `None` when
    /// nothing will come.
    fn rest(&self, commands: &Receiver<Command>) -> crate::Result<Option<Command>> {
        match commands.recv_timeout(REST) {
            Ok(command) => return Ok(Some(command)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => self.generator.check()?,
        }
        Ok(commands.recv().ok())
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(id, job, admitted, updates) => {
                let now = Instant::now();
                let clock = JobClock::new(admitted, now, job.prompt.len() as u64);
                let answer = match self.generator.submit(id, *job) {
                    Ok(()) => Update::Accepted,
                    Err(failure) => Update::Failed(failure),
                };
                self.routes.insert(id, Route { updates, clock });
                self.deliver(id, answer, now);
            }
            Command::Cancel(id) => {
                self.generator.cancel(id);
                if let Some(route) = self.routes.remove(&id) {
                    route.clock.end(self.meters.jobs());
                }
            }
            Command::Abort => {
                for &id in self.routes.keys() {
                    self.generator.cancel(id);
                }
                self.fail_all(&Failure::ShutDown);
            }
        }
        self.publish();
    }

    /// A job whose listener is gone has sent its cancellation, which is obeyed before the next step.
    fn deliver(&mut self, id: JobId, update: Update, now: Instant) {
        let is_last = matches!(update, Update::Ended(_) | Update::Failed(_));
        if let Some(route) = self.routes.get_mut(&id) {
            route.clock.note(&update, now, self.meters.jobs());
            let _ = route.updates.send(update);
        }
        if is_last {
            self.routes.remove(&id);
        }
    }

    fn fail_all(&mut self, failure: &Failure) {
        for (_, route) in self.routes.drain() {
            route.clock.end(self.meters.jobs());
            let _ = route.updates.send(Update::Failed(failure.clone()));
        }
    }

    fn publish(&mut self) {
        self.counts = self.generator.counts();
        self.page.publish(self.generator.load(), self.counts);
    }
}
