//! What clients and the engine's thread share, under many schedules: every order in which jobs are sent,
//! heard, cancelled, aborted and lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use shuttle::future::block_on;
use shuttle::thread;

use super::admission::Admission;
use super::desk::{EngineThread, Inbox};
use super::generation::Generation;
use super::generator::{Counts, Generator, GeneratorLimits, JobId, Load};
use super::job::{End, Failure, GeneratedToken, Job, Update};
use super::mailbox::{Command, EngineHandle};
use super::reopening::Reopen;
use crate::Error;
use crate::exec::{ClientId, DraftCounts, Work};
use crate::sample::SamplingParameters;

/// Schedules that each test tries.
const SCHEDULES: usize = 300;
/// Times that an empty inbox is looked into before patience is over.
const LOOKS: u32 = 3;

/// An inbox that lets others run where the real one would block.
struct Yielding(Receiver<Command>);

impl Inbox for Yielding {
    fn next(&self, patience: Option<Duration>) -> Result<Command, RecvTimeoutError> {
        let mut looks = 0;
        loop {
            match self.0.try_recv() {
                Ok(command) => return Ok(command),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if patience.is_some() && looks == LOOKS => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => thread::yield_now(),
            }
            looks += 1;
        }
    }

    fn take(&self) -> Option<Command> {
        thread::yield_now();
        self.0.try_recv().ok()
    }
}

/// Says 0, 1, 2 and so on to every job, one a step.
struct Counting {
    /// Tokens that each job has had.
    jobs: Arc<Mutex<BTreeMap<JobId, (u64, u64)>>>,
    steps: u64,
    /// The device is lost at this step.
    lost_at: Option<u64>,
}

impl Generator for Counting {
    fn limits(&self) -> GeneratorLimits {
        GeneratorLimits {
            context_tokens: 100,
            vocabulary: 100,
            max_sequences: 8,
            pictures: false,
            bounded_replay: false,
        }
    }

    fn submit(&mut self, id: JobId, job: Job) -> Result<(), Failure> {
        self.jobs.lock().unwrap().insert(id, (0, job.max_tokens));
        thread::yield_now();
        Ok(())
    }

    fn cancel(&mut self, id: JobId) {
        self.jobs.lock().unwrap().remove(&id);
        thread::yield_now();
    }

    fn step(&mut self, updates: &mut Vec<(JobId, Update)>) -> crate::Result<()> {
        self.steps += 1;
        thread::yield_now();
        if self.lost_at == Some(self.steps) {
            self.jobs.lock().unwrap().clear();
            return Err(tandem_hal::Error::DeviceLost { last_op: "none".to_owned() }.into());
        }
        self.jobs.lock().unwrap().retain(|id, (said, most)| {
            if *said == *most {
                updates.push((*id, Update::Ended(End::Limit)));
                return false;
            }
            let drafts = DraftCounts::default();
            let token = GeneratedToken { id: *said as u32, log_probs: None, drafts };
            updates.push((*id, Update::Tokens(vec![token])));
            *said += 1;
            true
        });
        Ok(())
    }

    fn load(&self) -> Load {
        Load { running: self.jobs.lock().unwrap().len() as u64, ..Load::default() }
    }

    fn counts(&self) -> Counts {
        thread::yield_now();
        Counts { work: Work { steps: self.steps, ..Work::default() }, ..Counts::default() }
    }
}

fn counting(lost_at: Option<u64>) -> Counting {
    Counting { jobs: Arc::default(), steps: 0, lost_at }
}

/// Runs `clients` beside the engine's thread, under many schedules. When they are gone, so is the thread,
/// and nothing is left of their jobs.
fn under_schedules(
    lost_at: Option<u64>,
    reopen: impl Fn() -> Option<Reopen<Counting>> + Send + Sync + 'static,
    clients: impl Fn(EngineHandle) + Send + Sync + 'static,
) {
    let schedule = move || {
        let generator = counting(lost_at);
        let jobs = Arc::clone(&generator.jobs);
        let (handle, thread) = EngineHandle::beside(generator, reopen());
        let EngineThread { desk, commands, reopen, _alive } = thread;
        let thread = EngineThread { desk, commands: Yielding(commands), reopen, _alive };
        let engine = thread::spawn(move || thread.run());
        clients(handle);
        engine.join().unwrap();
        assert!(jobs.lock().unwrap().is_empty(), "nobody wants these any longer");
    };
    shuttle::check_random(schedule, SCHEDULES);
}

fn submit(handle: &EngineHandle, tokens: u64) -> Generation {
    let job = Job {
        client: ClientId(0),
        prompt: vec![1],
        pictures: Vec::new(),
        form: None,
        stop_ids: Vec::new(),
        max_tokens: tokens,
        drafts: false,
        cache_salt: String::new(),
        sampling: SamplingParameters::default(),
    };
    let mut permit = Admission::new(1, 1).admit(1).expect("there is a place");
    let waiting = Arc::new(permit.take_waiting());
    thread::yield_now();
    handle.submit(job, Arc::new(permit), waiting)
}

/// What ends a job, after the tokens 0, 1, 2 and so on; how many there were.
fn last(generation: &mut Generation) -> (u64, Update) {
    let mut tokens = 0;
    loop {
        thread::yield_now();
        match block_on(generation.update()) {
            Update::Accepted | Update::Started { .. } => assert_eq!(tokens, 0),
            Update::Tokens(more) => {
                for token in more {
                    assert_eq!(u64::from(token.id), tokens, "in order, none twice");
                    tokens += 1;
                }
            }
            end => return (tokens, end),
        }
    }
}

#[test]
fn every_job_hears_all_of_its_tokens_and_one_end() {
    under_schedules(
        None,
        || None,
        |handle| {
            let patient = |tokens| {
                let handle = handle.clone();
                thread::spawn(move || {
                    let mut generation = submit(&handle, tokens);
                    assert_eq!(last(&mut generation), (tokens, Update::Ended(End::Limit)));
                    // Its end is published before it is heard: only the other two may run.
                    assert!(handle.load().running <= 2, "{:?}", handle.load());
                })
            };
            let (first, second) = (patient(3), patient(1));
            let fickle = thread::spawn(move || {
                let mut generation = submit(&handle, 50);
                assert_eq!(block_on(generation.update()), Update::Accepted);
                drop(generation);
                // This one does not even listen.
                submit(&handle, 50).cancel();
            });
            [first, second, fickle].into_iter().for_each(|client| client.join().unwrap());
        },
    );
}

#[test]
fn an_abort_ends_every_job_once() {
    under_schedules(
        None,
        || None,
        |handle| {
            let client = |tokens| {
                let handle = handle.clone();
                thread::spawn(move || {
                    let mut generation = submit(&handle, tokens);
                    let (heard, end) = last(&mut generation);
                    match end {
                        Update::Ended(End::Limit) => assert_eq!(heard, tokens),
                        end => assert_eq!(end, Update::Failed(Failure::ShutDown)),
                    }
                })
            };
            let clients = [client(2), client(4)];
            handle.abort();
            drop(handle);
            clients.into_iter().for_each(|client| client.join().unwrap());
        },
    );
}

#[test]
fn whoever_hears_that_the_device_is_lost_can_ask_why() {
    under_schedules(
        Some(3),
        || None,
        |handle| {
            let mut generation = submit(&handle, 20);
            let (_, end) = last(&mut generation);
            assert!(matches!(end, Update::Failed(Failure::DeviceLost(_))), "{end:?}");
            assert!(matches!(handle.take_fault(), Some(Error::Device(_))));
            // A job that nobody takes any longer is told so, whenever it came.
            let (heard, end) = last(&mut submit(&handle, 1));
            assert_eq!((heard, end), (0, Update::Failed(Failure::EngineStopped)));
            assert!(!handle.is_alive() || handle.is_open());
        },
    );
}

#[test]
fn a_device_that_is_opened_again_serves_those_who_come_back() {
    let reopened = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&reopened);
    let reopen = move || {
        count.store(0, Ordering::SeqCst);
        let count = Arc::clone(&count);
        let reopen: Reopen<Counting> = Box::new(move |_| {
            thread::yield_now();
            count.fetch_add(1, Ordering::SeqCst);
            Ok(counting(None))
        });
        Some(reopen)
    };
    under_schedules(Some(3), reopen, move |handle| {
        let clients = [4, 6].map(|tokens| {
            let (handle, reopened) = (handle.clone(), Arc::clone(&reopened));
            thread::spawn(move || {
                let mut losses = 0;
                loop {
                    match last(&mut submit(&handle, tokens)) {
                        (heard, Update::Ended(End::Limit)) => {
                            assert_eq!(heard, tokens);
                            break;
                        }
                        (_, Update::Failed(Failure::DeviceReopening(_))) => {
                            losses += 1;
                            // It is known to be closed, or is open again already.
                            let again = reopened.load(Ordering::SeqCst) > 0;
                            assert!(!handle.is_open() || again);
                        }
                        (_, end) => panic!("{end:?}"),
                    }
                    while !handle.is_open() {
                        thread::yield_now();
                    }
                }
                assert!(losses <= 1 || reopened.load(Ordering::SeqCst) == 1);
            })
        });
        drop(handle);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}
