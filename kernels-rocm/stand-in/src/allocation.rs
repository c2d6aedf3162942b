//! Memory that the program asked for or registered.

use std::collections::BTreeMap;

use tandem_gfxsim::{Access, Lent};

use crate::code::{Code, Result};
use crate::machine::{Guard, State, machine};
use crate::pages::{self, Pages};
use crate::stream;

/// What is known of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A board's own.
    Device,
    /// The host's, allocated here.
    Pinned,
    /// The host's, registered.
    Registered,
    /// A code object's.
    Code,
}

struct Allocation {
    kind: Kind,
    board: usize,
    bytes: u64,
}

/// Regions by address.
#[derive(Default)]
pub(crate) struct Allocations {
    all: BTreeMap<u64, Allocation>,
}

impl Allocations {
    /// The board that a region belongs to; none for memory of the host.
    pub(crate) fn owner(&self, base: u64) -> Option<usize> {
        let found = self.all.get(&base)?;
        matches!(found.kind, Kind::Device | Kind::Code).then_some(found.board)
    }

    /// What kind of region begins at an address.
    pub(crate) fn kind(&self, base: u64) -> Option<Kind> {
        self.all.get(&base).map(|found| found.kind)
    }

    pub(crate) fn note(&mut self, base: u64, kind: Kind, board: usize, bytes: u64) {
        self.all.insert(base, Allocation { kind, board, bytes });
    }

    /// Device memory in use on a board.
    pub(crate) fn used_bytes(&self, board: usize) -> u64 {
        let own = self.all.values().filter(|a| a.kind == Kind::Device && a.board == board);
        own.map(|a| a.bytes).sum()
    }
}

impl State {
    /// Device memory of a board; its address, 0 for no bytes.
    pub(crate) fn allocate(&mut self, board: usize, bytes: u64) -> Result<u64> {
        if bytes == 0 {
            return Ok(0);
        }
        let left = self.boards[board].memory_bytes - self.allocations.used_bytes(board);
        if bytes > left {
            return Err(Code::OUT_OF_MEMORY);
        }
        let pages = Pages::new(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let base = self.memory.reserve(bytes);
        let name = format!("an allocation on device {board}");
        self.enter_region(&name, pages.lent(base, bytes), Access::ReadWrite, Kind::Device, board)
    }

    /// Pinned memory of the host, at the same address for everybody.
    pub(crate) fn allocate_pinned(&mut self, board: usize, bytes: u64) -> Result<u64> {
        if bytes == 0 {
            return Ok(0);
        }
        let pages = Pages::new(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let lent = pages.lent(pages.host(), bytes);
        self.enter_region("pinned memory", lent, Access::ReadWrite, Kind::Pinned, board)
    }

    /// Makes memory of the program one that kernels see.
    ///
    /// # Safety
    /// As [`pages::registered`].
    pub(crate) unsafe fn register(&mut self, board: usize, start: u64, bytes: u64) -> Result<()> {
        if start == 0 || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: passed on.
        let found = unsafe { pages::registered(start, bytes) };
        let (lent, access) = found.ok_or(Code::INVALID_VALUE)?;
        let entered = self.enter_region("registered memory", lent, access, Kind::Registered, board);
        entered.map(|_| ()).map_err(|_| Code::REGISTERED)
    }

    fn enter_region(
        &mut self,
        name: &str,
        lent: Lent,
        access: Access,
        kind: Kind,
        board: usize,
    ) -> Result<u64> {
        let (base, bytes) = (lent.base, lent.bytes);
        self.memory.lend(name, lent, access).map_err(|_| Code::INVALID_VALUE)?;
        self.allocations.note(base, kind, board, bytes);
        self.memory_changed();
        Ok(base)
    }

    /// Takes a region away.
    pub(crate) fn remove_region(&mut self, base: u64) {
        self.allocations.all.remove(&base);
        self.memory.free(base);
        self.memory_changed();
    }
}

/// Frees what begins at `base` if it is of a kind, once the board that it belongs to has done all that it was given.
pub(crate) fn free(mut state: Guard, base: u64, kind: Kind, missing: Code) -> Result<()> {
    let found = state.allocations.all.get(&base).filter(|found| found.kind == kind);
    let Some(board) = found.map(|found| found.board) else {
        let what = format!("{base:#x} is freed, where no {} begins", kind.noun());
        machine().tell(&what);
        return Err(missing);
    };
    // Registered memory goes away with the call, whoever uses it.
    let boards = if kind == Kind::Registered { 0..state.boards.len() } else { board..board + 1 };
    for board in boards {
        state = stream::drain(state, board);
    }
    state.remove_region(base);
    state.sound(board)
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Device => "device allocation",
            Self::Pinned => "pinned allocation",
            Self::Registered => "registered memory",
            Self::Code => "code object",
        }
    }
}
