//! What is in flight: operations between their issue and the wait that covers them.

use super::die::Scope;
use super::execution::Step;
use super::transfer::{Action, Transfer};
use crate::fault::FaultKind;
use crate::schedule::Timing;

/// The counter that an operation adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    Memory,
    Lds,
    /// Both, with no order among others: lanes in LDS are the LDS counter's, all else the memory counter's.
    Both,
}

/// An operation that no wait has covered yet.
pub(crate) struct Pending {
    /// Index of the instruction.
    pub(crate) origin: u32,
    deed: Deed,
    is_done: bool,
    /// Whether it may overtake others of its queue, or they it.
    is_unordered: bool,
    vectors: (u16, u16),
    scalars: (u8, u8),
}

enum Deed {
    Nothing,
    Transfer(Box<Transfer>),
    Scalars {
        address: u64,
    },
    /// The die's newer bytes go to memory, behind what was issued before.
    WriteBack,
}

/// Values up to which the hardware counts.
const MOST: [usize; 2] = [63, 15];

impl Step<'_> {
    /// Issues an operation: it happens now or as late as waits permit.
    pub(crate) fn issue(&mut self, transfer: Transfer, queues: Queues) -> Result<(), FaultKind> {
        let results = transfer.results();
        if queues == Queues::Both {
            let (lds, memory) = transfer.split();
            let deeds = [self.begin(memory)?, self.begin(lds)?];
            self.wave.await_flat(results.0, results.1)?;
            for (queue, (deed, is_done)) in deeds.into_iter().enumerate() {
                self.push(queue, deed, is_done, true, results, (0, 0))?;
            }
            return Ok(());
        }
        let queue = usize::from(queues == Queues::Lds);
        let (deed, is_done) = self.begin(transfer)?;
        self.wave.await_vectors(results.0, results.1, queue)?;
        self.push(queue, deed, is_done, false, results, (0, 0))
    }

    /// What is left to do of an operation, and whether it has happened.
    fn begin(&mut self, transfer: Transfer) -> Result<(Deed, bool), FaultKind> {
        let eager = self.schedule.timing == Timing::Eager;
        // What happens at once is checked as it happens, but for LDS, which also keeps what is in flight.
        if !eager || transfer.writes_lds() {
            transfer.announce(self)?;
        }
        if eager {
            transfer.perform(self)?;
        }
        let is_empty = transfer.mask | transfer.zeros == 0;
        let is_over = is_empty || eager && !transfer.writes_lds();
        let deed = if is_over { Deed::Nothing } else { Deed::Transfer(Box::new(transfer)) };
        Ok((deed, eager))
    }

    /// Issues an operation among lanes whose result is there already, but may not be used before a wait.
    pub(crate) fn issue_movement(&mut self, register: u16) -> Result<(), FaultKind> {
        self.wave.await_vectors(register, 1, 1)?;
        self.push(1, Deed::Nothing, true, false, (register, 1), (0, 0))
    }

    /// Issues a load of `count` scalars.
    pub(crate) fn issue_scalars(
        &mut self,
        address: u64,
        first: u8,
        count: u8,
    ) -> Result<(), FaultKind> {
        self.memory.check(0, address, 4 * u32::from(count), false)?;
        self.wave.await_scalars(first, count)?;
        if self.schedule.timing == Timing::Eager {
            self.load_scalars(address, first, count)?;
        }
        let eager = self.schedule.timing == Timing::Eager;
        self.push(1, Deed::Scalars { address }, eager, true, (0, 0), (first, count))
    }

    /// Issues a writing back of the die's cache, if it is for others than the die.
    pub(crate) fn issue_write_back(&mut self, is_for_others: bool) -> Result<(), FaultKind> {
        let eager = self.schedule.timing == Timing::Eager;
        if eager && is_for_others {
            self.write_back();
        }
        let deed = if eager || !is_for_others { Deed::Nothing } else { Deed::WriteBack };
        self.push(0, deed, eager, false, (0, 0), (0, 0))
    }

    fn write_back(&mut self) {
        if let Some(die) = self.die.as_deref_mut() {
            die.write_back(self.memory);
        }
    }

    /// Issues a reading of a clock into a pair that holds it already.
    pub(crate) fn issue_clock(&mut self, first: u8) -> Result<(), FaultKind> {
        self.wave.await_scalars(first, 2)?;
        self.push(1, Deed::Nothing, true, true, (0, 0), (first, 2))
    }

    fn push(
        &mut self,
        queue: usize,
        deed: Deed,
        is_done: bool,
        is_unordered: bool,
        vectors: (u16, u16),
        scalars: (u8, u8),
    ) -> Result<(), FaultKind> {
        let origin = self.wave.at;
        self.wave.queues[queue].push_back(Pending {
            origin,
            deed,
            is_done,
            is_unordered,
            vectors,
            scalars,
        });
        // More than the counter can hold are not let out.
        self.wait(queue, MOST[queue])
    }

    fn load_scalars(&mut self, address: u64, first: u8, count: u8) -> Result<(), FaultKind> {
        for at in 0..count {
            let mut word = [0; 4];
            let address = address + 4 * u64::from(at);
            match self.die.as_deref_mut() {
                Some(die) => die.read(self.memory, 0, address, &mut word, Scope::Wave)?,
                None => self.memory.get(0, address, &mut word)?,
            }
            self.wave.scalars[usize::from(first + at)] = u32::from_le_bytes(word);
        }
        Ok(())
    }

    /// Waits until at most `left` operations of a queue (0 memory, 1 LDS) are outstanding. Where some may come
    /// out of order, only a wait for all of them says anything.
    pub(crate) fn wait(&mut self, queue: usize, left: usize) -> Result<(), FaultKind> {
        if left > 0 && self.wave.queues[queue].iter().any(|pending| pending.is_unordered) {
            return Ok(());
        }
        while self.wave.queues[queue].len() > left {
            let Some(pending) = self.wave.queues[queue].pop_front() else { break };
            self.blame = Some(pending.origin);
            let (first, count) = pending.scalars;
            match &pending.deed {
                Deed::Transfer(transfer) => {
                    if !pending.is_done {
                        transfer.perform(self)?;
                    }
                    transfer.land(self)?;
                }
                Deed::WriteBack if !pending.is_done => self.write_back(),
                Deed::Scalars { address } if !pending.is_done => {
                    self.load_scalars(*address, first, count)?;
                }
                _ => {}
            }
            self.wave.scalars_arrived(first, count);
            self.wave.vectors_arrived(pending.vectors.0, pending.vectors.1, queue);
            self.blame = None;
        }
        Ok(())
    }

    /// Whether a load to LDS has not been waited for.
    pub(crate) fn is_filling_lds(&self) -> bool {
        self.wave.queues[0].iter().any(|pending| {
            matches!(&pending.deed, Deed::Transfer(t) if matches!(t.action, Action::ToLds { .. }))
        })
    }
}
