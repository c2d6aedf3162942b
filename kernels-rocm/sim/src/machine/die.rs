//! The L2 cache of one die. Dies do not see each other's: a write stays where it was made until it is written back,
//! and what was read once is read again as it was until it is dropped. Caches here are as large as need be, so that
//! nothing else ever brings them together.
//!
//! What does, as LLVM's memory model for gfx942 has it: accesses of device or system scope go to memory, and so do
//! atomic operations; `buffer_wbl2` of these scopes writes the die's bytes back, `buffer_inv` drops those that are
//! no newer than memory; the end of a launch writes all back.

use std::collections::HashMap;

use super::memory::View;
use crate::fault::FaultKind;

/// Dies of a device. Workgroups go to them in turn.
pub(crate) const DIES: usize = 8;

/// Bytes that are fetched together.
const LINE: u64 = 128;

/// A line's bytes: a bit of `held` for each that is there, of `dirty` for each that memory does not have yet.
#[derive(Clone)]
struct Line {
    bytes: [u8; LINE as usize],
    held: u128,
    dirty: u128,
}

/// The cache.
#[derive(Default)]
pub(crate) struct Die {
    lines: HashMap<u64, Line>,
}

/// Who is to see an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Wave,
    Workgroup,
    Device,
    System,
}

impl Scope {
    /// The scope that the bits `sc0` and `sc1` of a load or store say.
    pub(crate) fn of(sc0: bool, sc1: bool) -> Self {
        match (sc1, sc0) {
            (false, false) => Self::Wave,
            (false, true) => Self::Workgroup,
            (true, false) => Self::Device,
            (true, true) => Self::System,
        }
    }

    /// Whether other dies are among those who see it.
    pub(crate) fn leaves_die(self) -> bool {
        self >= Self::Device
    }
}

impl Die {
    /// What a lane reads.
    pub(crate) fn read(
        &mut self,
        view: &View<'_>,
        lane: u32,
        address: u64,
        to: &mut [u8],
        scope: Scope,
    ) -> Result<(), FaultKind> {
        view.check(lane, address, to.len() as u32, false)?;
        for (at, to) in (address..).zip(to) {
            let line = self.line(at);
            let bit = 1 << (at % LINE);
            if scope.leaves_die() {
                line.held &= !bit | line.dirty;
            }
            if line.held & bit == 0 {
                line.fetch(view, at / LINE * LINE);
            }
            *to = line.bytes[(at % LINE) as usize];
        }
        Ok(())
    }

    /// Writes for a lane.
    pub(crate) fn write(
        &mut self,
        view: &View<'_>,
        lane: u32,
        address: u64,
        from: &[u8],
        scope: Scope,
    ) -> Result<(), FaultKind> {
        let region = view.check(lane, address, from.len() as u32, true)?;
        let is_through = scope.leaves_die();
        if is_through {
            region.store(address, from);
        }
        for (at, byte) in (address..).zip(from) {
            let (line, bit) = (self.line(at), 1 << (at % LINE));
            line.bytes[(at % LINE) as usize] = *byte;
            line.held |= bit;
            line.dirty = if is_through { line.dirty & !bit } else { line.dirty | bit };
        }
        Ok(())
    }

    /// Makes memory the only place that has some bytes, for an atomic operation there.
    pub(crate) fn leave(&mut self, view: &View<'_>, address: u64, bytes: u64) {
        for at in address..address.saturating_add(bytes) {
            let (line, bit) = (self.line(at), 1 << (at % LINE));
            line.write_back(view, at / LINE * LINE, bit);
            line.held &= !bit;
        }
    }

    /// Writes back what memory does not have yet.
    pub(crate) fn write_back(&mut self, view: &View<'_>) {
        for (at, line) in &mut self.lines {
            line.write_back(view, *at, u128::MAX);
        }
    }

    /// Drops what memory has.
    pub(crate) fn invalidate(&mut self) {
        self.lines.retain(|_, line| {
            line.held &= line.dirty;
            line.held != 0
        });
    }

    fn line(&mut self, address: u64) -> &mut Line {
        let empty = || Line { bytes: [0; LINE as usize], held: 0, dirty: 0 };
        self.lines.entry(address / LINE * LINE).or_insert_with(empty)
    }
}

impl Line {
    /// Fills bytes that are not held from memory, as far as there is any.
    fn fetch(&mut self, view: &View<'_>, base: u64) {
        for at in 0..LINE {
            let bit = 1 << at;
            if self.held & bit != 0 {
                continue;
            }
            if let Some(region) = view.region(base + at, 1) {
                region.load(base + at, &mut self.bytes[at as usize..=at as usize]);
                self.held |= bit;
            }
        }
    }

    /// Writes bytes of `which` back that memory does not have yet.
    fn write_back(&mut self, view: &View<'_>, base: u64, which: u128) {
        let dirty = self.dirty & which;
        for at in (0..LINE).filter(|at| dirty >> at & 1 != 0) {
            // What a kernel wrote lay in a region.
            if let Some(region) = view.region(base + at, 1) {
                region.store(base + at, &self.bytes[at as usize..=at as usize]);
            }
        }
        self.dirty &= !which;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Memory};

    /// Two dies and a word that both see.
    fn machine() -> (Memory, u64, [Die; 2]) {
        let mut memory = Memory::new();
        let at = memory.allocate("x", &[1; 200], Access::ReadWrite);
        (memory, at, [Die::default(), Die::default()])
    }

    fn read(die: &mut Die, view: &View<'_>, at: u64, scope: Scope) -> u8 {
        let mut byte = [0];
        die.read(view, 0, at, &mut byte, scope).expect("in bounds");
        byte[0]
    }

    #[test]
    fn a_write_stays_until_it_is_written_back() {
        let (memory, at, [mut a, mut b]) = machine();
        let view = View::new(&memory);
        assert_eq!(read(&mut b, &view, at, Scope::Wave), 1);
        a.write(&view, 0, at, &[7], Scope::Workgroup).expect("in bounds");
        assert_eq!(read(&mut a, &view, at, Scope::System), 7, "its own die sees it");
        assert_eq!(read(&mut b, &view, at, Scope::Device), 1);
        a.write_back(&view);
        assert_eq!(memory.read(at, 2), Some(vec![7, 1]));
        assert_eq!(read(&mut b, &view, at, Scope::Device), 7);
    }

    #[test]
    fn what_was_read_is_read_again_until_it_is_dropped() {
        let (memory, at, [mut a, mut b]) = machine();
        let view = View::new(&memory);
        // The line has its neighbour too.
        assert_eq!(read(&mut b, &view, at + 1, Scope::Wave), 1);
        a.write(&view, 0, at, &[7], Scope::Device).expect("in bounds");
        assert_eq!(read(&mut b, &view, at, Scope::Workgroup), 1);
        b.write(&view, 0, at + 2, &[9], Scope::Wave).expect("in bounds");
        b.invalidate();
        assert_eq!(read(&mut b, &view, at, Scope::Wave), 7);
        assert_eq!(read(&mut b, &view, at + 2, Scope::Wave), 9, "what is newer stays");
    }

    #[test]
    fn neighbours_of_a_dirty_byte_are_not_written_back() {
        let (memory, at, [mut a, mut b]) = machine();
        let view = View::new(&memory);
        a.write(&view, 0, at, &[7], Scope::Wave).expect("in bounds");
        b.write(&view, 0, at + 1, &[8], Scope::Wave).expect("in bounds");
        assert_eq!(read(&mut a, &view, at + 1, Scope::Wave), 1);
        b.write_back(&view);
        a.write_back(&view);
        assert_eq!(memory.read(at, 3), Some(vec![7, 8, 1]));
        a.write(&view, 0, at, &[6], Scope::Wave).expect("in bounds");
        a.leave(&view, at, 4);
        assert_eq!(memory.read(at, 1), Some(vec![6]));
        assert!(a.read(&view, 0, at + 200, &mut [0], Scope::Wave).is_err());
        assert!(a.write(&view, 0, at + 199, &[0; 2], Scope::Wave).is_err());
    }
}
