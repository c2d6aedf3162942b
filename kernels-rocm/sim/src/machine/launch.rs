//! Launches while they run: whose turn it is.

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
    let tally = |launch: &Launch<'_>| {
        let runs = vec![0; launch.dispatch.module.object().instructions().len()];
        Tally { runs, ..Tally::default() }
    };
    let mut machine = Machine {
        memory: &memory,
        view: View::new(&memory),
        schedule,
        random: Random::new(schedule.seed),
        tallies: launches.iter().map(tally).collect(),
        launches,
        begun: vec![0; dispatches.len()],
        resident: Vec::new(),
        clock: 0,
        turn: 0,
        run_out: 0,
    };
    machine.run()?;
    Ok(machine.counters())
}

/// Launches that run, and where they are.
struct Machine<'a, 'm> {
    memory: &'m Memory,
    view: View<'m>,
    schedule: &'a Schedule,
    random: Random,
    launches: Vec<Launch<'a>>,
    tallies: Vec<Tally>,
    /// Workgroups that have begun, of each launch.
    begun: Vec<u64>,
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

impl Machine<'_, '_> {
    fn run(&mut self) -> Result<(), LaunchError> {
        loop {
            self.admit();
            if self.resident.is_empty() {
                return Ok(());
            }
            let (workgroup, wave) = self.pick();
            self.take_turn(workgroup, wave)?;
            self.resident[workgroup].pass_barrier();
            if self.resident[workgroup].is_done() {
                // In order, so that a schedule does not depend on how this is done.
                self.resident.remove(workgroup);
            }
        }
    }

    /// Lets workgroups begin while there is room, of each launch in turn.
    fn admit(&mut self) {
        while self.resident.len() < self.schedule.resident.max(1) {
            let waiting =
                |launch: &usize| self.begun[*launch] < self.launches[*launch].workgroups();
            let count =
                |launch: &usize| self.resident.iter().filter(|w| w.launch == *launch).count();
            let Some(launch) = (0..self.launches.len()).filter(waiting).min_by_key(count) else {
                return;
            };
            let number = self.begun[launch];
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
        let object = launch.dispatch.module.object();
        let most =
            if self.schedule.seed == 0 { TURN } else { 1 + self.random.below(SHORT_TURN) as u64 };
        let mut step = Step {
            wave: &mut group.waves[wave],
            lds: &mut group.lds,
            memory: &self.view,
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
