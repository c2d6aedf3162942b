//! Launches while they run: whose turn it is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::die::{DIES, Die};
use super::dispatch::{Dispatch, Launch};
use super::execution::{Step, Tally};
use super::memory::{Memory, View};
use super::wave::State;
use super::workgroup::Workgroup;
use crate::fault::{Fault, FaultKind};
use crate::schedule::{Random, Schedule};
use crate::{Counters, LaunchError};

/// Runs a launch to its end.
///
/// # Errors
///
/// [`LaunchError`] if the launch does not suit the kernel, and with a [`Fault`] for what the kernel did wrong;
/// memory then holds what was written until then.
pub fn launch(
    memory: &Memory,
    dispatch: &Dispatch<'_>,
    schedule: &Schedule,
) -> Result<Counters, LaunchError> {
    let counters = launch_together(memory, std::slice::from_ref(dispatch), schedule)?;
    Ok(counters.into_iter().next().unwrap_or_default())
}

/// Runs launches at the same time, as several devices do, or several streams of one. Waves of one may wait for
/// waves of another.
///
/// # Errors
///
/// As [`launch`].
pub fn launch_together(
    memory: &Memory,
    dispatches: &[Dispatch<'_>],
    schedule: &Schedule,
) -> Result<Vec<Counters>, LaunchError> {
    // Arguments are nobody else's.
    let mut memory = memory.clone();
    let launches =
        dispatches.iter().map(|d| Launch::new(&mut memory, d)).collect::<Result<Vec<_>, _>>()?;
    let threads = threads(&launches, schedule);
    let stop = AtomicU64::new(u64::MAX);
    let machine = |own| Machine::new(&memory, &launches, schedule, Share { own, threads }, &stop);
    let mut machines: Vec<_> = (0..threads as u64).map(machine).collect();
    run(&mut machines)?;
    let mut counters = vec![Counters::default(); launches.len()];
    for machine in &machines {
        for (sum, part) in counters.iter_mut().zip(machine.counters()) {
            *sum += part;
        }
    }
    Ok(counters)
}

/// Threads for the workgroups of a launch: one where they may wait for each other, so that a schedule decides who
/// comes first.
fn threads(launches: &[Launch<'_>], schedule: &Schedule) -> usize {
    match launches {
        [launch] if !launch.dispatch.module.object().communicates() => {
            schedule.threads.clamp(1, launch.workgroups().clamp(1, 64) as usize)
        }
        _ => 1,
    }
}

/// Steps in which a launch may be done before threads are begun for it.
const ALONE: u64 = 10_000;

/// Runs each machine in a thread; the failure of the workgroup that comes first.
fn run(machines: &mut [Machine<'_, '_>]) -> Result<(), LaunchError> {
    let Some((first, others)) = machines.split_first_mut() else { return Ok(()) };
    let begun = first.run(if others.is_empty() { u64::MAX } else { ALONE });
    let results: Vec<_> = if first.is_done() {
        let others = others.iter_mut().map(|machine| machine.run(u64::MAX));
        std::iter::once(begun).chain(others).collect()
    } else {
        thread::scope(|scope| {
            let spawn = |machine| scope.spawn(|| Machine::run(machine, u64::MAX));
            let others: Vec<_> = others.iter_mut().map(spawn).collect();
            let own = begun.and_then(|()| first.run(u64::MAX));
            let results = others.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            std::iter::once(own).chain(results).collect()
        })
    };
    let failures = results.into_iter().filter_map(Result::err);
    failures.min_by_key(|(workgroup, _)| *workgroup).map_or(Ok(()), |(_, error)| Err(error))
}

/// The dies' caches of a launch. They make no difference to one whose workgroups cannot know of each other.
fn dies(launch: &Launch<'_>, schedule: &Schedule) -> Vec<Die> {
    let has_caches = schedule.caches && launch.dispatch.module.object().communicates();
    (0..if has_caches { DIES } else { 0 }).map(|_| Die::default()).collect()
}

/// Which workgroups a machine runs: every so many from its own number on.
#[derive(Clone, Copy)]
struct Share {
    own: u64,
    threads: usize,
}

/// Launches that run in a thread, and where they are.
struct Machine<'a, 'm> {
    memory: &'m Memory,
    view: View<'m>,
    schedule: &'a Schedule,
    random: Random,
    launches: &'m [Launch<'a>],
    share: Share,
    /// The first workgroup that failed in any thread: those behind it need not begin.
    stop: &'m AtomicU64,
    tallies: Vec<Tally>,
    /// Workgroups that have begun, of each launch.
    begun: Vec<u64>,
    /// Caches of the dies that each launch runs on, where they are modelled.
    dies: Vec<Vec<Die>>,
    resident: Vec<Workgroup>,
    clock: u64,
    /// In order: the workgroup whose turn it is, and turns that ran out, which move on among its waves.
    turn: usize,
    run_out: usize,
}

/// Steps after which another wave gets its turn when waves run in order: more than a kernel has between two waits
/// for other waves, but an end to waiting for one.
const TURN: u64 = 20_000;
/// The same, at most, when waves are interleaved.
const SHORT_TURN: usize = 40;

impl<'a, 'm> Machine<'a, 'm> {
    fn new(
        memory: &'m Memory,
        launches: &'m [Launch<'a>],
        schedule: &'a Schedule,
        share: Share,
        stop: &'m AtomicU64,
    ) -> Self {
        let tally = |launch: &Launch<'_>| {
            let runs = vec![0; launch.dispatch.module.object().instructions().len()];
            Tally { runs, ..Tally::default() }
        };
        Self {
            memory,
            view: View::new(memory),
            schedule,
            random: Random::new(schedule.seed),
            tallies: launches.iter().map(tally).collect(),
            begun: vec![0; launches.len()],
            dies: launches.iter().map(|launch| dies(launch, schedule)).collect(),
            launches,
            share,
            stop,
            resident: Vec::new(),
            clock: 0,
            turn: 0,
            run_out: 0,
        }
    }

    /// Runs until all workgroups have ended, or so many steps are made. A failure, and the workgroup's number.
    fn run(&mut self, steps: u64) -> Result<(), (u64, LaunchError)> {
        let end = self.clock.saturating_add(steps);
        loop {
            self.admit();
            if self.resident.is_empty() || self.clock >= end {
                self.write_back();
                return Ok(());
            }
            let (workgroup, wave) = self.pick();
            if let Err(error) = self.take_turn(workgroup, wave) {
                let number = self.resident[workgroup].number;
                self.stop.fetch_min(number, Relaxed);
                self.resident.clear();
                self.write_back();
                return Err((number, error));
            }
            self.resident[workgroup].pass_barrier();
            if self.resident[workgroup].is_done() {
                // In order, so that a schedule does not depend on how this is done.
                self.resident.remove(workgroup);
            }
        }
    }

    /// What is newer in the dies' caches goes to memory, as at a launch's end.
    fn write_back(&mut self) {
        for die in self.dies.iter_mut().flatten() {
            die.write_back(&self.view);
        }
    }

    /// Whether nothing is left to run.
    fn is_done(&self) -> bool {
        let next = |launch: usize| self.number(launch) < self.launches[launch].workgroups();
        self.resident.is_empty() && !(0..self.launches.len()).any(next)
    }

    /// The number of a launch's next workgroup.
    fn number(&self, launch: usize) -> u64 {
        self.share.own + self.begun[launch] * self.share.threads as u64
    }

    /// Lets workgroups begin while there is room, of each launch in turn.
    fn admit(&mut self) {
        let (threads, stop) = (self.share.threads, self.stop.load(Relaxed));
        while self.resident.len() < self.schedule.resident.div_ceil(threads).max(1) {
            let waiting = |launch: &usize| {
                self.number(*launch) < self.launches[*launch].workgroups().min(stop)
            };
            let count =
                |launch: &usize| self.resident.iter().filter(|w| w.launch == *launch).count();
            let Some(launch) = (0..self.launches.len()).filter(waiting).min_by_key(count) else {
                return;
            };
            let number = self.number(launch);
            self.begun[launch] += 1;
            let seed = self.schedule.seed;
            let workgroup = self.launches[launch].workgroup(launch, number, self.memory, seed);
            self.resident.push(workgroup);
        }
    }

    /// The next wave to run. One is always running: barriers are passed as soon as they can be.
    fn pick(&mut self) -> (usize, usize) {
        let in_order = self.schedule.seed == 0;
        let mut at = if in_order { self.turn } else { self.random.below(self.resident.len()) };
        loop {
            at %= self.resident.len();
            let waves = self.resident[at].waves.iter().enumerate();
            let running = waves.filter(|(_, wave)| wave.state == State::Running);
            let count = running.clone().count().max(1);
            let nth = if in_order { self.run_out % count } else { self.random.below(count) };
            if let Some((wave, _)) = running.clone().nth(nth) {
                self.turn = at;
                return (at, wave);
            }
            at += 1;
        }
    }

    fn take_turn(&mut self, workgroup: usize, wave: usize) -> Result<(), LaunchError> {
        let group = &mut self.resident[workgroup];
        let launch = &self.launches[group.launch];
        let dies = &mut self.dies[group.launch];
        let object = launch.dispatch.module.object();
        let most =
            if self.schedule.seed == 0 { TURN } else { 1 + self.random.below(SHORT_TURN) as u64 };
        let mut step = Step {
            wave: &mut group.waves[wave],
            lds: &mut group.lds,
            memory: &self.view,
            die: dies.get_mut((group.number % DIES as u64) as usize),
            tally: &mut self.tallies[group.launch],
            schedule: self.schedule,
            object,
            base: launch.dispatch.module.base,
            clock: self.clock,
            blame: None,
        };
        // Waves that others may wait for, and wait for others, do so in turn with those of other launches.
        let turn = object.communicates().then(|| self.memory.turnstile().enter());
        let result = step.run(most);
        drop(turn);
        self.clock = step.clock;
        let at = step.blame.unwrap_or(step.wave.at) as usize;
        let limit = self.schedule.max_steps;
        let kind = match result {
            Ok(steps) if self.clock <= limit => {
                if steps == most {
                    self.turn += 1;
                    self.run_out += 1;
                }
                return Ok(());
            }
            Ok(_) => FaultKind::StepLimit(limit),
            Err(kind) => kind,
        };
        let instruction = &object.instructions()[at];
        Err(LaunchError::Fault(Box::new(Fault {
            kind,
            kernel: launch.dispatch.kernel.to_owned(),
            pc: instruction.pc,
            instruction: instruction.text.clone(),
            workgroup: group.at,
            wave: wave as u32,
        })))
    }

    fn counters(&self) -> Vec<Counters> {
        let each = self.launches.iter().zip(&self.tallies);
        each.map(|(launch, tally)| {
            let mut counters = Counters {
                steps: tally.runs.iter().sum(),
                matrix_cycles: tally.matrix_cycles,
                lds_passes: tally.lds_passes,
                lds_ideal_passes: tally.lds_ideal_passes,
                ..Counters::default()
            };
            let instructions = launch.dispatch.module.object().instructions();
            for (instruction, runs) in
                instructions.iter().zip(&tally.runs).filter(|(_, runs)| **runs > 0)
            {
                *counters.instructions.entry(instruction.name.clone()).or_default() += runs;
            }
            counters
        })
        .collect()
    }
}
