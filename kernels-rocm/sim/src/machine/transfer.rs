//! Operations on memory and LDS, which happen at some time between their issue and the wait for them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::die::Scope;
use super::execution::Step;
use super::lds::Write;
use super::memory::{PRIVATE_BASE, SHARED_BASE};
use super::region::{Access, Region};
use super::wave::{LANES, Lanes};
use crate::class::atomic::Atomic;
use crate::class::lds::transposed;
use crate::fault::FaultKind;

/// What an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Lds,
    /// A lane's own memory.
    Scratch,
    /// Any of them, told by the address.
    Flat,
}

/// An operation of up to 64 lanes on memory or LDS.
#[derive(Clone)]
pub(crate) struct Transfer {
    pub(crate) space: Space,
    /// Who is to see it, where it is on memory.
    pub(crate) scope: Scope,
    /// Lanes that take part.
    pub(crate) mask: u64,
    /// Lanes that load zeros instead.
    pub(crate) zeros: u64,
    pub(crate) addresses: [u64; LANES],
    /// Each lane moves this many pieces, at these distances from its address.
    pub(crate) pieces: usize,
    pub(crate) offsets: [u32; 2],
    /// Size of a piece.
    pub(crate) bytes: u32,
    pub(crate) action: Action,
}

/// What becomes of the bytes.
#[derive(Clone)]
pub(crate) enum Action {
    /// Into registers.
    Load { first: u16, form: Form },
    /// From registers: the words of each piece, one piece behind the other.
    Store { words: Vec<Lanes> },
    /// Changed in place, and what was there into registers.
    Atomic { atomic: &'static Atomic, words: Vec<Lanes>, result: Option<u16> },
    /// Into LDS, one lane behind the other.
    ToLds { base: u32 },
}

/// How loaded bytes fill registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole words.
    Words,
    /// One byte or short, extended to a word.
    Narrow { signed: bool },
    /// One byte or short, extended to half a word; the other half stays.
    Half { signed: bool, high: bool },
    /// Columns of the matrix whose rows 16 lanes hold, of elements of so many bits.
    Columns { bits: u32 },
}

impl Transfer {
    /// Registers that it fills.
    pub(crate) fn results(&self) -> (u16, u16) {
        match &self.action {
            Action::Load { first, form: Form::Words | Form::Columns { .. } } => {
                (*first, (self.bytes / 4) as u16 * self.pieces as u16)
            }
            Action::Load { first, .. } => (*first, 1),
            Action::Atomic { result: Some(first), .. } => (*first, (self.bytes / 4) as u16),
            _ => (0, 0),
        }
    }

    /// Where a piece of a lane lies.
    fn place(&self, lane: usize, piece: usize) -> (Space, u64) {
        let address = self.addresses[lane];
        if self.space == Space::Lds {
            // LDS addresses are 32 bits wide and do not wrap.
            return (Space::Lds, address + u64::from(self.offsets[piece]));
        }
        let address = address.wrapping_add(self.offsets[piece].into());
        if self.space != Space::Flat {
            return (self.space, address);
        }
        match address & !0xffff_ffff {
            SHARED_BASE => (Space::Lds, address - SHARED_BASE),
            PRIVATE_BASE => (Space::Scratch, address - PRIVATE_BASE),
            _ => (Space::Global, address),
        }
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        let mask = self.mask;
        (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
    }

    /// The lanes that are in LDS, and the others.
    pub(crate) fn split(self) -> (Transfer, Transfer) {
        let is_in_lds = |lane: &usize| self.place(*lane, 0).0 == Space::Lds;
        let lds = self.lanes().filter(is_in_lds).fold(0, |mask, lane| mask | 1 << lane);
        (
            Transfer { mask: self.mask & lds, ..self.clone() },
            Transfer { mask: self.mask & !lds, ..self },
        )
    }

    /// Checks addresses, and tells LDS what is to be written.
    pub(crate) fn announce(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let (write, kind) = match self.action {
            Action::Load { .. } | Action::ToLds { .. } => (false, Write::Plain),
            Action::Store { .. } => (true, Write::Plain),
            Action::Atomic { .. } => (true, Write::Atomic),
        };
        let is_checked = self.one_region(step, write).is_some();
        for lane in self.lanes().filter(|_| !is_checked) {
            for piece in 0..self.pieces {
                let (space, address) = self.place(lane, piece);
                match space {
                    Space::Lds if write => {
                        step.lds.announce(step.wave, lane as u32, address, self.bytes, kind)?;
                    }
                    Space::Global => {
                        step.memory.check(lane as u32, address, self.bytes, write)?;
                    }
                    // Reads of LDS are checked when they happen, scratch is nobody else's.
                    _ => {}
                }
            }
        }
        if let Action::ToLds { base } = self.action {
            for lane in (0..LANES).filter(|lane| (self.mask | self.zeros) >> lane & 1 != 0) {
                let to = u64::from(base) + lane as u64 * u64::from(self.bytes);
                step.lds.announce(step.wave, lane as u32, to, self.bytes, Write::Plain)?;
            }
        }
        Ok(())
    }

    /// Tells LDS that writes are done.
    pub(crate) fn land(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        match self.action {
            Action::Load { .. } => {}
            Action::ToLds { base } => {
                for lane in (0..LANES).filter(|lane| (self.mask | self.zeros) >> lane & 1 != 0) {
                    let to = u64::from(base) + lane as u64 * u64::from(self.bytes);
                    step.lds.land(step.wave, lane as u32, to, self.bytes)?;
                }
            }
            Action::Store { .. } | Action::Atomic { .. } => {
                for lane in self.lanes() {
                    for piece in 0..self.pieces {
                        if let (Space::Lds, address) = self.place(lane, piece) {
                            step.lds.land(step.wave, lane as u32, address, self.bytes)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether LDS must hear of its end.
    pub(crate) fn writes_lds(&self) -> bool {
        match self.action {
            Action::Load { .. } => false,
            Action::ToLds { .. } => true,
            _ => matches!(self.space, Space::Lds | Space::Flat),
        }
    }

    pub(crate) fn perform(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        match &self.action {
            Action::Load { first, form } => self.load(step, *first, *form),
            Action::Store { words } => self.store(step, words),
            Action::Atomic { atomic, words, result } => self.change(step, atomic, words, *result),
            Action::ToLds { base } => self.copy_to_lds(step, *base),
        }
    }

    fn load(&self, step: &mut Step<'_>, first: u16, form: Form) -> Result<(), FaultKind> {
        let words = (self.bytes as usize).div_ceil(4);
        let mut lanes = [[0u32; LANES]; 8];
        let region = if step.die.is_none() { self.one_region(step, false) } else { None };
        for (lane, from) in region.into_iter().flat_map(|region| self.places(region)) {
            for (to, word) in lanes[..words].iter_mut().zip(from) {
                to[lane] = word.load(Relaxed);
            }
        }
        for lane in self.lanes().filter(|_| region.is_none()) {
            for piece in 0..self.pieces {
                let bytes = self.read(step, lane, piece)?;
                for word in 0..words {
                    let value = [0, 1, 2, 3].map(|i| bytes[4 * word + i]);
                    lanes[piece * words + word][lane] = u32::from_le_bytes(value);
                }
            }
        }
        if let Form::Columns { bits } = form {
            lanes = transposed(&lanes, bits, self.bytes * 8);
        }
        let mask = self.mask | self.zeros;
        for (register, lanes) in (first..).zip(&lanes[..words * self.pieces]) {
            let to = step.wave.arriving(register);
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                to[lane] = form.placed(to[lane], lanes[lane], self.bytes);
            }
        }
        Ok(())
    }

    /// The region that all lanes are in with whole words, as they nearly always are, where they may do what they do.
    fn one_region<'a>(&self, step: &Step<'a>, write: bool) -> Option<&'a Region> {
        if self.space != Space::Global || self.pieces != 1 || !self.bytes.is_multiple_of(4) {
            return None;
        }
        let first = self.addresses[self.mask.trailing_zeros() as usize % LANES];
        let region = step.memory.region(first, 0)?;
        let is_inside = |lane: usize| {
            let address = self.addresses[lane];
            address.is_multiple_of(4) && region.holds(address, self.bytes.into())
        };
        let may_be = !write || region.access == Access::ReadWrite;
        (may_be && self.lanes().all(is_inside)).then_some(region)
    }

    /// The lanes, and the words that each of them is at.
    fn places<'a>(&self, region: &'a Region) -> impl Iterator<Item = (usize, &'a [AtomicU32])> {
        let (origin, words) = region.words();
        let from = move |lane: usize| ((self.addresses[lane] - origin) / 4) as usize;
        self.lanes().map(move |lane| (lane, &words[from(lane)..]))
    }

    fn store(&self, step: &mut Step<'_>, words: &[Lanes]) -> Result<(), FaultKind> {
        let each = (self.bytes as usize).div_ceil(4);
        if let (None, Some(region)) = (&step.die, self.one_region(step, true)) {
            for (lane, to) in self.places(region) {
                for (to, word) in to.iter().zip(words) {
                    to.store(word[lane], Relaxed);
                }
            }
            return Ok(());
        }
        for lane in self.lanes() {
            for piece in 0..self.pieces {
                let mut bytes = [0; 16];
                for (to, word) in
                    bytes.chunks_exact_mut(4).zip(&words[piece * each..(piece + 1) * each])
                {
                    to.copy_from_slice(&word[lane].to_le_bytes());
                }
                self.write(step, lane, piece, &bytes[..self.bytes as usize])?;
            }
        }
        Ok(())
    }

    fn change(
        &self,
        step: &mut Step<'_>,
        atomic: &Atomic,
        words: &[Lanes],
        result: Option<u16>,
    ) -> Result<(), FaultKind> {
        let each = (self.bytes / 4) as usize;
        let value = |from: usize, lane: usize| {
            let high = if each == 2 { words.get(from + 1).map_or(0, |w| w[lane]) } else { 0 };
            u64::from(words.get(from).map_or(0, |w| w[lane])) | u64::from(high) << 32
        };
        for lane in self.lanes() {
            let mut bytes = [0; 8];
            bytes[..4 * each].copy_from_slice(&self.read(step, lane, 0)?[..4 * each]);
            let old = u64::from_le_bytes(bytes);
            let new = (atomic.change)(old, value(0, lane), value(each, lane)).to_le_bytes();
            self.write(step, lane, 0, &new[..4 * each])?;
            if let Some(first) = result {
                step.wave.arriving(first)[lane] = old as u32;
                if each == 2 {
                    step.wave.arriving(first + 1)[lane] = (old >> 32) as u32;
                }
            }
        }
        Ok(())
    }

    fn copy_to_lds(&self, step: &mut Step<'_>, base: u32) -> Result<(), FaultKind> {
        let size = self.bytes as usize;
        for lane in (0..LANES).filter(|lane| (self.mask | self.zeros) >> lane & 1 != 0) {
            let is_read = self.mask >> lane & 1 != 0;
            let bytes = if is_read { self.read(step, lane, 0)? } else { [0; 16] };
            step.lds.write(lane as u32, u64::from(base) + (lane * size) as u64, &bytes[..size])?;
        }
        Ok(())
    }

    /// A piece of a lane, zeros behind it.
    fn read(&self, step: &mut Step<'_>, lane: usize, piece: usize) -> Result<[u8; 16], FaultKind> {
        let (space, address) = self.place(lane, piece);
        let mut bytes = [0; 16];
        let to = &mut bytes[..self.bytes as usize];
        match space {
            Space::Lds if matches!(self.action, Action::Atomic { .. }) => {
                step.lds.read_for_atomic(lane as u32, address, to)?;
            }
            Space::Lds => step.lds.read(step.wave, lane as u32, address, to)?,
            Space::Scratch => to.copy_from_slice(step.scratch(lane, address, self.bytes)?),
            Space::Global | Space::Flat => match step.die.as_deref_mut() {
                Some(die) if matches!(self.action, Action::Atomic { .. }) => {
                    step.memory.check(lane as u32, address, self.bytes, true)?;
                    die.leave(step.memory, address, self.bytes.into());
                    step.memory.get(lane as u32, address, to)?;
                }
                Some(die) => die.read(step.memory, lane as u32, address, to, self.scope)?,
                None => step.memory.get(lane as u32, address, to)?,
            },
        }
        Ok(bytes)
    }

    fn write(
        &self,
        step: &mut Step<'_>,
        lane: usize,
        piece: usize,
        bytes: &[u8],
    ) -> Result<(), FaultKind> {
        let (space, address) = self.place(lane, piece);
        match space {
            Space::Lds => step.lds.write(lane as u32, address, bytes),
            Space::Scratch => {
                step.scratch(lane, address, self.bytes)?.copy_from_slice(bytes);
                Ok(())
            }
            Space::Global | Space::Flat => match step.die.as_deref_mut() {
                Some(die) if !matches!(self.action, Action::Atomic { .. }) => {
                    die.write(step.memory, lane as u32, address, bytes, self.scope)
                }
                // Atomic operations have left the die when they read.
                _ => step.memory.put(lane as u32, address, bytes),
            },
        }
    }
}

impl Form {
    /// A register's new word, of what it holds and what was loaded.
    fn placed(self, old: u32, loaded: u32, bytes: u32) -> u32 {
        let extended = |signed: bool| match (bytes, signed) {
            (1, true) => i32::from(loaded as i8) as u32,
            (2, true) => i32::from(loaded as i16) as u32,
            _ => loaded,
        };
        match self {
            Self::Words | Self::Columns { .. } => loaded,
            Self::Narrow { signed } => extended(signed),
            Self::Half { signed, high: false } => old & 0xffff_0000 | extended(signed) & 0xffff,
            Self::Half { signed, high: true } => old & 0xffff | extended(signed) << 16,
        }
    }
}
