//! All that there is: boards, memory, streams, behind one lock.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use tandem_gfxsim::{Memory, Schedule};

use crate::allocation::Allocations;
use crate::board::Board;
use crate::capture::{Capture, Executable, Graph};
use crate::code::{Code, Result};
use crate::event::Event;
use crate::handle::Handles;
use crate::module::{Function, Module};
use crate::report;
use crate::settings::Settings;
use crate::stream::Stream;
use crate::work::Scene;

/// The machine of this process.
pub(crate) struct Machine {
    settings: Settings,
    state: Mutex<State>,
    changed: Condvar,
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) boards: Vec<BoardState>,
    pub(crate) memory: Memory,
    pub(crate) allocations: Allocations,
    pub(crate) modules: Handles<Module>,
    pub(crate) functions: Handles<Function>,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) captures: Handles<Capture>,
    pub(crate) graphs: Handles<Graph>,
    pub(crate) executables: Handles<Executable>,
    /// All of memory as it is, until it changes.
    whole: Option<Arc<Memory>>,
    launches: usize,
}

/// A board and what became of it.
pub(crate) struct BoardState {
    pub(crate) board: Board,
    pub(crate) memory_bytes: u64,
    /// Boards whose memory it may use.
    pub(crate) peers: BTreeSet<usize>,
    /// What every later call gives.
    pub(crate) fault: Option<Code>,
    /// The stream that has no handle.
    pub(crate) default_stream: usize,
    /// Memory that its kernels may use as it is, until it changes.
    view: Option<Arc<Memory>>,
}

pub(crate) type Guard = MutexGuard<'static, State>;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The machine of this process, made when it is first asked for.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let (settings, why) = Settings::read();
        if let Some(why) = why {
            report::tell(settings.report.as_deref(), &why);
        }
        Machine::new(settings)
    })
}

impl Machine {
    fn new(settings: Settings) -> Machine {
        let share = memory_of_host() / 4 / settings.boards.len().max(1) as u64;
        let mut state = State {
            boards: vec![],
            memory: Memory::new(),
            allocations: Allocations::default(),
            modules: Handles::default(),
            functions: Handles::default(),
            streams: Handles::default(),
            events: Handles::default(),
            captures: Handles::default(),
            graphs: Handles::default(),
            executables: Handles::default(),
            whole: None,
            launches: 0,
        };
        for (ordinal, board) in settings.boards.iter().enumerate() {
            let memory_bytes = settings.memory_bytes.unwrap_or(share.min(board.memory_bytes));
            let default_stream = state.streams.insert(Stream::new(ordinal, true));
            state.boards.push(BoardState {
                board: *board,
                memory_bytes,
                peers: BTreeSet::new(),
                fault: None,
                default_stream,
                view: None,
            });
        }
        Machine { settings, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn lock(&'static self) -> Guard {
        // Every change of the state is one step, so that a panic between two leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others change the state, and waits until they have.
    pub(crate) fn wait(&'static self, state: Guard) -> Guard {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a change.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Tells a diagnosis.
    pub(crate) fn tell(&self, what: &str) {
        report::tell(self.settings.report.as_deref(), what);
    }

    /// The schedule of a launch by number.
    pub(crate) fn schedule(&self, launch: usize) -> Schedule {
        self.settings.schedules[launch % self.settings.schedules.len()]
    }

    /// The state and this thread's board.
    pub(crate) fn enter(&'static self) -> Result<(Guard, usize)> {
        let state = self.lock();
        let current = CURRENT.get();
        if state.boards.is_empty() { Err(Code::NO_DEVICE) } else { Ok((state, current)) }
    }

    /// The same where the board has not failed.
    pub(crate) fn enter_sound(&'static self) -> Result<(Guard, usize)> {
        let (state, current) = self.enter()?;
        state.sound(current)?;
        Ok((state, current))
    }
}

/// Makes a board this thread's.
pub(crate) fn set_current(ordinal: usize) {
    CURRENT.set(ordinal);
}

impl State {
    /// An ordinal of C's.
    pub(crate) fn ordinal(&self, given: i32) -> Result<usize> {
        if self.boards.is_empty() {
            return Err(Code::NO_DEVICE);
        }
        let ordinal = usize::try_from(given).map_err(|_| Code::INVALID_DEVICE)?;
        if ordinal < self.boards.len() { Ok(ordinal) } else { Err(Code::INVALID_DEVICE) }
    }

    /// The error of a board that has failed.
    pub(crate) fn sound(&self, board: usize) -> Result<()> {
        self.boards[board].fault.map_or(Ok(()), Err)
    }

    /// Numbers for so many launches.
    pub(crate) fn number_launches(&mut self, count: usize) -> usize {
        let first = self.launches;
        self.launches = first.wrapping_add(count);
        first
    }

    /// What work of a board sees, as it is now.
    pub(crate) fn scene(&mut self, board: usize) -> Scene {
        let memory = &self.memory;
        let whole = self.whole.get_or_insert_with(|| Arc::new(memory.clone())).clone();
        let (allocations, peers) = (&self.allocations, &self.boards[board].peers);
        let suits = |base| allocations.owner(base).is_none_or(|o| o == board || peers.contains(&o));
        let view = match &self.boards[board].view {
            Some(view) => view.clone(),
            None => Arc::new(memory.restricted(suits)),
        };
        self.boards[board].view = Some(view.clone());
        Scene { board, view, whole }
    }

    /// Forgets how memory was.
    pub(crate) fn memory_changed(&mut self) {
        self.whole = None;
        self.boards.iter_mut().for_each(|board| board.view = None);
    }
}

/// Memory of the machine that this runs on.
fn memory_of_host() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(8 << 30, |kib| kib << 10)
}
