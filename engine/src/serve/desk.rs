//! What the engine's thread does.
//!
//! One plain thread owns the generator: it takes jobs and cancellations out of the mailbox between
//! steps, and hands each job's updates to whoever submitted it. Nothing here ever waits for a
//! client: a job's queue holds at most its own tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use tokio::sync::{mpsc, watch};

use super::admission::WaitingTokens;
use super::generator::{Counts, Generator, JobId};
use super::job::{Failure, Update};
use super::mailbox::{Command, Submitted};
use super::metrics::{EnginePage, JobClock, Meters};
use super::reopening::{Reopen, Reopening};
use crate::Error;

/// How long the engine is idle before its accounts are checked.
const REST: Duration = Duration::from_secs(1);

/// Where commands come from. Tests of schedules have one that never blocks.
pub(super) trait Inbox {
    /// The next command, waited for: as long as `patience`, or for ever.
    fn next(&self, patience: Option<Duration>) -> Result<Command, RecvTimeoutError>;

    /// The next command, if it is there.
    fn take(&self) -> Option<Command>;
}

impl Inbox for Receiver<Command> {
    fn next(&self, patience: Option<Duration>) -> Result<Command, RecvTimeoutError> {
        match patience {
            Some(patience) => self.recv_timeout(patience),
            None => self.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn take(&self) -> Option<Command> {
        self.try_recv().ok()
    }
}

/// All that the thread has.
pub(super) struct EngineThread<G, I> {
    pub(super) desk: Desk<G>,
    pub(super) commands: I,
    pub(super) reopen: Option<Reopen<G>>,
    /// Told by its end when the thread has ended.
    pub(super) _alive: watch::Sender<()>,
}

impl<G: Generator, I: Inbox> EngineThread<G, I> {
    /// Works to the end.
    pub(super) fn run(self) {
        self.desk.run(&self.commands, self.reopen.map(Reopening::new));
    }
}

/// What the thread shares with the handles.
pub(super) struct Shared {
    pub(super) page: EnginePage,
    pub(super) meters: Arc<Meters>,
    /// Why nothing goes on.
    pub(super) fault: Arc<Mutex<Option<Error>>>,
    /// False while the device is opened again.
    pub(super) is_open: Arc<AtomicBool>,
}

/// What the engine's thread has before it.
pub(super) struct Desk<G> {
    generator: G,
    routes: HashMap<JobId, Route>,
    /// Published last.
    counts: Counts,
    shared: Shared,
}

/// Where a job's updates go.
struct Route {
    updates: mpsc::UnboundedSender<Update>,
    clock: JobClock,
    /// Until its prefill begins.
    waiting: Option<Arc<WaitingTokens>>,
}

impl<G: Generator> Desk<G> {
    pub(super) fn new(generator: G, shared: Shared) -> Self {
        Self { generator, routes: HashMap::new(), counts: Counts::default(), shared }
    }

    /// Works until nobody can ask for more, or the generator cannot go on.
    fn run(mut self, commands: &impl Inbox, mut reopening: Option<Reopening<G>>) {
        loop {
            self.publish();
            let began = self.counts.work.steps;
            let Err(error) = self.work(commands) else { return };
            let (Some(reopening), Error::Device(lost)) = (&mut reopening, &error) else {
                return self.end(error);
            };
            // Before jobs hear of it, so that whoever asks then is told to wait.
            self.shared.is_open.store(false, Ordering::SeqCst);
            let failure = Failure::DeviceReopening(lost.to_string());
            self.fail_all(&failure);
            reopening.note_steps(self.counts.work.steps - began);
            let limits = self.generator.limits();
            // First, for its memory.
            drop(self.generator);
            match reopening.run(error, limits, |pause| refuse(commands, pause, &failure)) {
                Ok(Some(generator)) => self.generator = generator,
                Ok(None) => return,
                Err(error) => return end(&self.shared.fault, error),
            }
            self.shared.is_open.store(true, Ordering::SeqCst);
        }
    }

    fn end(mut self, error: Error) {
        let failure = Failure::from_engine(&error);
        // Before jobs hear of it, so that whoever asks then is told why.
        end(&self.shared.fault, error);
        self.fail_all(&failure);
    }

    fn work(&mut self, commands: &impl Inbox) -> crate::Result<()> {
        let mut updates = Vec::new();
        loop {
            if self.generator.is_idle() {
                match self.rest(commands)? {
                    Some(command) => self.obey(command)?,
                    None => return Ok(()),
                }
            }
            while let Some(command) = commands.take() {
                self.obey(command)?;
            }
            let (start, before) = (Instant::now(), self.counts);
            if !self.generator.is_idle() {
                self.generator.step(&mut updates)?;
            }
            // Before the updates go out, so that whoever hears of an end sees its pages free.
            self.publish();
            let now = Instant::now();
            self.shared.meters.steps().note(&before, &self.counts, now.duration_since(start));
            for (id, update) in updates.drain(..) {
                // What starts in a step starts with it.
                let starts = matches!(update, Update::Started { .. });
                self.deliver(id, update, if starts { start } else { now });
            }
        }
    }

    /// Waits for something to do; after a while looks once whether everything is in its place, and
    /// saves what is to outlive the process. `None` when nothing will come.
    fn rest(&mut self, commands: &impl Inbox) -> crate::Result<Option<Command>> {
        match commands.next(Some(REST)) {
            Ok(command) => return Ok(Some(command)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => self.generator.check()?,
        }
        self.shared.meters.checked_at_rest();
        while self.generator.save()? {
            if let Some(command) = commands.take() {
                return Ok(Some(command));
            }
        }
        Ok(commands.next(None).ok())
    }

    fn obey(&mut self, command: Command) -> crate::Result<()> {
        match command {
            Command::Submit(submitted) => {
                let Submitted { id, job, admitted, waiting, updates } = *submitted;
                let now = Instant::now();
                let clock = JobClock::new(admitted, now, job.prompt.len() as u64);
                let answer = match self.generator.submit(id, job) {
                    Ok(()) => Update::Accepted,
                    Err(failure) => Update::Failed(failure),
                };
                self.routes.insert(id, Route { updates, clock, waiting: Some(waiting) });
                self.deliver(id, answer, now);
            }
            Command::Cancel(id) => {
                self.generator.cancel(id);
                if let Some(route) = self.routes.remove(&id) {
                    route.clock.end(self.shared.meters.jobs());
                }
            }
            Command::Abort => {
                for &id in self.routes.keys() {
                    self.generator.cancel(id);
                }
                self.fail_all(&Failure::ShutDown);
            }
            Command::Save(saved) => {
                while self.generator.save()? {}
                // Whoever asked may have stopped waiting.
                let _ = saved.send(());
            }
        }
        self.publish();
        Ok(())
    }

    /// A job whose listener is gone has sent its cancellation, which is obeyed before the next step.
    fn deliver(&mut self, id: JobId, update: Update, now: Instant) {
        let is_last = matches!(update, Update::Ended(_) | Update::Failed(_));
        if let Some(route) = self.routes.get_mut(&id) {
            route.clock.note(&update, now, self.shared.meters.jobs());
            if matches!(update, Update::Started { .. }) {
                route.waiting = None;
            }
            let _ = route.updates.send(update);
        }
        if is_last {
            self.routes.remove(&id);
        }
    }

    fn fail_all(&mut self, failure: &Failure) {
        for (_, route) in self.routes.drain() {
            route.clock.end(self.shared.meters.jobs());
            let _ = route.updates.send(Update::Failed(failure.clone()));
        }
    }

    fn publish(&mut self) {
        self.counts = self.generator.counts();
        self.shared.page.publish(self.generator.load(), self.counts);
    }
}

/// Tells why nothing goes on.
fn end(fault: &Mutex<Option<Error>>, error: Error) {
    *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
}

/// Refuses what comes for as long; false when nobody is left who could ask.
fn refuse(commands: &impl Inbox, pause: Duration, failure: &Failure) -> bool {
    let until = Instant::now() + pause;
    loop {
        match commands.next(Some(until.saturating_duration_since(Instant::now()))) {
            Ok(Command::Submit(submitted)) => {
                // A client that is gone does not want to know.
                let _ = submitted.updates.send(Update::Failed(failure.clone()));
            }
            // There is nothing to end.
            Ok(Command::Cancel(_) | Command::Abort | Command::Save(_)) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}
