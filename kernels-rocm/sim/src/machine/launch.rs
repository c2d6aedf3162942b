//! Launches: what waves begin with, and in which order they run.

use super::execution::{Step, Tally};
use super::lds::Lds;
use super::memory::{Access, Memory, Module};
use super::wave::{EXEC, LANES, State, Wave};
use super::workgroup::Workgroup;
use crate::fault::{Fault, FaultKind};
use crate::object::{Argument, Kernel, UserRegisters};
use crate::schedule::{Random, Schedule};
use crate::{Counters, LaunchError};

/// A launch of a kernel.
#[derive(Clone)]
pub struct Dispatch<'a> {
    /// The code object that has the kernel.
    pub module: &'a Module,
    /// The kernel's name.
    pub kernel: &'a str,
    /// Workgroups in each direction.
    pub grid: [u32; 3],
    /// Work items of a workgroup in each direction.
    pub block: [u32; 3],
    /// The arguments, one behind the other as the kernel declares them. What a compiler adds to them is filled in.
    pub arguments: &'a [u8],
    /// LDS beside that which the kernel declares, in bytes.
    pub dynamic_lds_bytes: u32,
}

/// Runs a launch to its end.
///
/// # Errors
///
/// [`LaunchError`] if the launch does not suit the kernel, and with a [`Fault`] for what the kernel did wrong;
/// memory then holds what was written until then.
pub fn launch(
    memory: &mut Memory,
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
    memory: &mut Memory,
    dispatches: &[Dispatch<'_>],
    schedule: &Schedule,
) -> Result<Vec<Counters>, LaunchError> {
    let launches =
        dispatches.iter().map(|d| Launch::new(memory, d)).collect::<Result<Vec<_>, _>>()?;
    let regions: Vec<u64> = launches.iter().flat_map(|launch| launch.regions).collect();
    let mut machine = Machine {
        memory,
        schedule,
        random: Random::new(schedule.seed),
        tallies: launches.iter().map(Launch::tally).collect(),
        launches,
        begun: vec![0; dispatches.len()],
        resident: Vec::new(),
        clock: 0,
        turn: 0,
        run_out: 0,
    };
    let result = machine.run();
    let counters = machine.counters();
    for region in regions {
        memory.free(region);
    }
    result.map(|()| counters)
}

/// A launch that is found good, with its arguments in memory.
struct Launch<'a> {
    dispatch: &'a Dispatch<'a>,
    kernel: &'a Kernel,
    lds_bytes: u32,
    /// Addresses of the arguments and of the dispatch packet.
    regions: [u64; 2],
}

impl<'a> Launch<'a> {
    fn new(memory: &mut Memory, dispatch: &'a Dispatch<'a>) -> Result<Self, LaunchError> {
        let object = dispatch.module.object();
        let name = dispatch.kernel;
        let kernel = object.kernel(name).ok_or_else(|| LaunchError::NoKernel(name.to_owned()))?;
        let unfit = |reason: String| Err(LaunchError::Unfit { kernel: name.to_owned(), reason });
        let items: u64 = dispatch.block.iter().map(|n| u64::from(*n)).product();
        let most = kernel.notes.max_workgroup_size.min(1024);
        if items == 0 || items > u64::from(most) || dispatch.block.iter().any(|n| *n > 1024) {
            return unfit(format!("blocks of {:?} work items, of at most {most}", dispatch.block));
        }
        let lds_bytes = kernel.descriptor.lds_bytes.saturating_add(dispatch.dynamic_lds_bytes);
        if lds_bytes > object.target().lds_bytes() {
            return unfit(format!(
                "{lds_bytes} bytes of LDS, where {} has {}",
                object.target(),
                object.target().lds_bytes()
            ));
        }
        let explicit = kernel.notes.explicit_bytes();
        if (dispatch.arguments.len() as u64) < explicit {
            return unfit(format!(
                "{} bytes of arguments, where it takes {explicit}",
                dispatch.arguments.len()
            ));
        }
        let arguments = arguments(kernel, dispatch);
        let packet = packet(kernel, dispatch, lds_bytes);
        let regions = [("the kernel's arguments", arguments), ("the dispatch packet", packet)]
            .map(|(name, bytes)| memory.allocate(name, bytes, Access::ReadOnly));
        Ok(Self { dispatch, kernel, lds_bytes, regions })
    }

    fn tally(&self) -> Tally {
        let runs = vec![0; self.dispatch.module.object().instructions().len()];
        Tally { runs, ..Tally::default() }
    }

    fn workgroups(&self) -> u64 {
        self.dispatch.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// Workgroup `number` of the grid at its begin.
    fn workgroup(&self, launch: usize, number: u64, memory: &Memory, seed: u64) -> Workgroup {
        let [x, y, _] = self.dispatch.grid.map(u64::from);
        let at = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
        let poison = 0x7ff8_0000 | (seed as u32).wrapping_mul(0x9e5) & 0xffff;
        let items: u32 = self.dispatch.block.iter().product();
        let waves =
            (0..items.div_ceil(LANES as u32)).map(|id| self.wave(id, items, at, memory, poison));
        Workgroup { at, launch, waves: waves.collect(), lds: Lds::new(self.lds_bytes, poison) }
    }

    fn wave(&self, id: u32, items: u32, at: [u32; 3], memory: &Memory, poison: u32) -> Wave {
        let descriptor = &self.kernel.descriptor;
        let registers = self.dispatch.module.object().vector_registers();
        let mut wave =
            Wave::new(id, self.kernel.entry, registers, descriptor.private_bytes as usize, poison);
        let first = id * LANES as u32;
        let lanes = (items - first).min(LANES as u32);
        let active = u64::MAX >> (LANES as u32 - lanes);
        wave.scalars[usize::from(EXEC)] = active as u32;
        wave.scalars[usize::from(EXEC) + 1] = (active >> 32) as u32;
        let [arguments, packet] = self.regions;
        let mut next = 0;
        let mut put = |words: &[u32]| {
            wave.scalars[next..next + words.len()].copy_from_slice(words);
            next += words.len();
        };
        let pair = |address: u64| [address as u32, (address >> 32) as u32];
        for (register, words) in descriptor.user_registers() {
            match register {
                UserRegisters::Kernarg => put(&pair(arguments)),
                UserRegisters::DispatchPacket => put(&pair(packet)),
                UserRegisters::PrivateBytes => put(&[descriptor.private_bytes]),
                // Nothing of the others is modelled; what reads them computes with the poison.
                _ => put(&[poison; 4][..words.into()]),
            }
        }
        let (count, from) = descriptor.preload;
        for word in from..from + count {
            let bytes =
                memory.read(arguments + 4 * u64::from(word), 4).and_then(<[u8]>::first_chunk);
            put(&[bytes.map_or(poison, |bytes| u32::from_le_bytes(*bytes))]);
        }
        for (id, _) in at.iter().zip(descriptor.workgroup_ids()).filter(|(_, enabled)| *enabled) {
            put(&[*id]);
        }
        let [x, y, _] = self.dispatch.block;
        if let Ok(register) = wave.vector_mut(0) {
            for (lane, to) in (first..).zip(register) {
                // Lanes beyond the block have what comes out; they are not active.
                let place = [lane % x, lane / x % y, lane / x / y].map(|at| at & 0x3ff);
                *to = place[0] | place[1] << 10 | place[2] << 20;
            }
        }
        wave
    }
}

/// The argument segment: the caller's arguments and what the compiler adds.
fn arguments(kernel: &Kernel, dispatch: &Dispatch<'_>) -> Vec<u8> {
    let mut bytes = vec![0; kernel.descriptor.kernarg_bytes as usize];
    let given = (kernel.notes.explicit_bytes() as usize).min(bytes.len());
    bytes[..given].copy_from_slice(&dispatch.arguments[..given]);
    for argument in kernel.notes.arguments.iter().filter(|argument| argument.is_hidden()) {
        let value = hidden(argument, dispatch).to_le_bytes();
        let place = argument.offset as usize..(argument.offset + argument.size) as usize;
        if let (Some(to), Some(value)) = (bytes.get_mut(place), value.get(..argument.size as usize))
        {
            to.copy_from_slice(value);
        }
    }
    bytes
}

/// What the runtime puts into an argument of its own.
fn hidden(argument: &Argument, dispatch: &Dispatch<'_>) -> u64 {
    let kind = argument.kind.as_str();
    let axis = match kind.chars().last() {
        Some('x') => 0,
        Some('y') => 1,
        _ => 2,
    };
    let axes = |values: [u32; 3]| u64::from(values[axis]);
    match kind {
        "hidden_grid_dims" => {
            let used = (0..3).rev().find(|axis| dispatch.grid[*axis] * dispatch.block[*axis] > 1);
            used.unwrap_or(0) as u64 + 1
        }
        "hidden_dynamic_lds_size" => dispatch.dynamic_lds_bytes.into(),
        "hidden_shared_base" => super::SHARED_BASE >> 32,
        "hidden_private_base" => super::PRIVATE_BASE >> 32,
        _ if kind.starts_with("hidden_block_count_") => axes(dispatch.grid),
        _ if kind.starts_with("hidden_group_size_") => axes(dispatch.block),
        // Grids are whole blocks, and begin at 0; queues, heaps and host calls there are none.
        _ => 0,
    }
}

/// The packet that a queue would have held.
fn packet(kernel: &Kernel, dispatch: &Dispatch<'_>, lds_bytes: u32) -> Vec<u8> {
    let mut packet = vec![0; 64];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    for axis in 0..3 {
        put(4 + 2 * axis, &(dispatch.block[axis] as u16).to_le_bytes());
        put(12 + 4 * axis, &dispatch.grid[axis].saturating_mul(dispatch.block[axis]).to_le_bytes());
    }
    put(24, &kernel.descriptor.private_bytes.to_le_bytes());
    put(28, &lds_bytes.to_le_bytes());
    packet
}

/// Launches that run, and where they are.
struct Machine<'a, 'm> {
    memory: &'m mut Memory,
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
            memory: self.memory,
            tally: &mut self.tallies[group.launch],
            schedule: self.schedule,
            object,
            base: launch.dispatch.module.base,
            clock: self.clock,
            blame: None,
        };
        let result = step.run(most);
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
