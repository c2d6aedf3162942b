//! The engine's thread and its mailbox.
//!
//! One plain thread owns the generator: it takes jobs and cancellations out of the mailbox between
//! steps, and hands each job's updates to whoever submitted it. Nothing here ever waits for a
//! client: a job's queue holds at most its own tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tokio::sync::{mpsc, watch};

use super::admission::Permit;
use super::generation::Generation;
use super::generator::{Generator, GeneratorLimits, JobId, Load};
use super::job::{Failure, Job, Update};

/// How long the engine is idle before its accounts are checked.
const REST: Duration = Duration::from_secs(1);

/// What the engine's thread is asked to do.
pub(super) enum Command {
    /// Run a job and send its updates here.
    Submit(JobId, Box<Job>, mpsc::UnboundedSender<Update>),
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
    load: Arc<Mutex<Load>>,
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
        let load = Arc::new(Mutex::new(generator.load()));
        let desk = Desk { generator, routes: HashMap::new(), load: Arc::clone(&load) };
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
        Ok(Self { inbox, next_id: Arc::default(), limits, load, alive })
    }

    /// Bounds that hold for every job.
    pub fn limits(&self) -> GeneratorLimits {
        self.limits
    }

    /// What the engine was busy with after its last step.
    pub fn load(&self) -> Load {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner)
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
        let _ = self.inbox.send(Command::Submit(id, Box::new(job), sender));
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
    routes: HashMap<JobId, mpsc::UnboundedSender<Update>>,
    load: Arc<Mutex<Load>>,
}

impl<G: Generator> Desk<G> {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut updates = Vec::new();
        loop {
            if self.generator.is_idle() {
                match self.rest(commands) {
                    Ok(Some(command)) => self.obey(command),
                    Ok(None) => return,
                    Err(error) => {
                        self.fail_all(&Failure::Faulted(error.to_string()));
                        return;
                    }
                }
            }
            for command in commands.try_iter() {
                self.obey(command);
            }
            if !self.generator.is_idle()
                && let Err(error) = self.generator.step(&mut updates)
            {
                self.fail_all(&Failure::Faulted(error.to_string()));
                return;
            }
            // Before the updates go out, so that whoever hears of an end sees its pages free.
            self.publish_load();
            for (id, update) in updates.drain(..) {
                self.deliver(id, update);
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
            Command::Submit(id, job, route) => {
                let answer = match self.generator.submit(id, *job) {
                    Ok(()) => Update::Accepted,
                    Err(failure) => Update::Failed(failure),
                };
                self.routes.insert(id, route);
                self.deliver(id, answer);
            }
            Command::Cancel(id) => {
                self.generator.cancel(id);
                self.routes.remove(&id);
            }
            Command::Abort => {
                for &id in self.routes.keys() {
                    self.generator.cancel(id);
                }
                self.fail_all(&Failure::ShutDown);
            }
        }
        self.publish_load();
    }

    /// A job whose listener is gone has sent its cancellation, which is obeyed before the next step.
    fn deliver(&mut self, id: JobId, update: Update) {
        let is_last = matches!(update, Update::Ended(_) | Update::Failed(_));
        if let Some(route) = self.routes.get(&id) {
            let _ = route.send(update);
        }
        if is_last {
            self.routes.remove(&id);
        }
    }

    fn fail_all(&mut self, failure: &Failure) {
        for (_, route) in self.routes.drain() {
            let _ = route.send(Update::Failed(failure.clone()));
        }
    }

    fn publish_load(&self) {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) = self.generator.load();
    }
}
