//! A wave's registers.

use std::collections::VecDeque;

use super::queue::Pending;
use crate::fault::{FaultKind, Register};

/// Lanes of a wave.
pub(crate) const LANES: usize = 64;

/// A word for each lane.
pub(crate) type Lanes = [u32; LANES];

/// The scalar pair that vector compares write.
pub(crate) const VCC: u8 = 106;
/// The scalar that LDS loads take their address from.
pub(crate) const M0: u8 = 124;
/// The scalar pair that says which lanes are active.
pub(crate) const EXEC: u8 = 126;

/// Where a wave is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    AtBarrier,
    Ended,
}

/// A wave.
pub(crate) struct Wave {
    /// Its place in the workgroup.
    pub(crate) id: u32,
    /// Index of the instruction it is at.
    pub(crate) at: u32,
    pub(crate) state: State,
    /// Barriers that it has passed.
    pub(crate) interval: u32,
    /// The scalar condition.
    pub(crate) condition: bool,
    pub(crate) scalars: [u32; 128],
    vectors: Vec<Lanes>,
    scalars_awaited: [u8; 128],
    /// Loads on their way to each vector register, by queue.
    vectors_awaited: Vec<[u8; 2]>,
    /// Operations that `vmcnt` counts, and those that `lgkmcnt` counts, oldest first.
    pub(crate) queues: [VecDeque<Pending>; 2],
    /// Private memory, one lane behind the other.
    pub(crate) scratch: Vec<u8>,
}

impl Wave {
    /// A wave at instruction `at` whose registers hold `poison`: a NaN as f32 and as f64, and different for
    /// each schedule, so that a result that depends on it shows.
    pub(crate) fn new(
        id: u32,
        at: u32,
        vector_registers: u16,
        scratch_bytes: usize,
        poison: u32,
    ) -> Self {
        Self {
            id,
            at,
            state: State::Running,
            interval: 0,
            condition: false,
            scalars: [poison; 128],
            vectors: vec![[poison; LANES]; vector_registers.into()],
            scalars_awaited: [0; 128],
            vectors_awaited: vec![[0; 2]; vector_registers.into()],
            queues: [VecDeque::new(), VecDeque::new()],
            scratch: vec![poison as u8; scratch_bytes * LANES],
        }
    }

    /// Lanes that are active, a bit each.
    pub(crate) fn active(&self) -> u64 {
        u64::from(self.scalars[usize::from(EXEC)])
            | u64::from(self.scalars[usize::from(EXEC) + 1]) << 32
    }

    /// A scalar register's value.
    pub(crate) fn scalar(&self, at: u8) -> Result<u32, FaultKind> {
        if self.scalars_awaited[usize::from(at)] > 0 {
            return Err(FaultKind::MissingWait(Register::Scalar(at)));
        }
        Ok(self.scalars[usize::from(at)])
    }

    /// The value of a pair of scalar registers.
    pub(crate) fn scalar_pair(&self, at: u8) -> Result<u64, FaultKind> {
        Ok(u64::from(self.scalar(at)?) | u64::from(self.scalar(at + 1)?) << 32)
    }

    /// Writes a scalar register.
    pub(crate) fn write_scalar(&mut self, at: u8, value: u32) -> Result<(), FaultKind> {
        self.scalar(at)?;
        self.scalars[usize::from(at)] = value;
        Ok(())
    }

    /// Writes a pair of scalar registers.
    pub(crate) fn write_scalar_pair(&mut self, at: u8, value: u64) -> Result<(), FaultKind> {
        self.write_scalar(at, value as u32)?;
        self.write_scalar(at + 1, (value >> 32) as u32)
    }

    /// A vector register.
    pub(crate) fn vector(&self, at: u16) -> Result<&Lanes, FaultKind> {
        if self.vectors_awaited[usize::from(at)] != [0; 2] {
            return Err(FaultKind::MissingWait(Register::Vector(at)));
        }
        Ok(&self.vectors[usize::from(at)])
    }

    /// A vector register, to be written.
    pub(crate) fn vector_mut(&mut self, at: u16) -> Result<&mut Lanes, FaultKind> {
        self.vector(at)?;
        Ok(&mut self.vectors[usize::from(at)])
    }

    /// A vector register that a load arrives in.
    pub(crate) fn arriving(&mut self, at: u16) -> &mut Lanes {
        &mut self.vectors[usize::from(at)]
    }

    /// Writes a vector register in the lanes of `mask`.
    pub(crate) fn write_vector(
        &mut self,
        at: u16,
        lanes: &Lanes,
        mask: u64,
    ) -> Result<(), FaultKind> {
        blend(self.vector_mut(at)?, lanes, mask);
        Ok(())
    }

    /// Marks vector registers as awaited from a queue (0 memory, 1 LDS). Loads of one queue arrive in order, so
    /// that several may be on their way to a register; from the other none may be.
    pub(crate) fn await_vectors(
        &mut self,
        first: u16,
        count: u16,
        queue: usize,
    ) -> Result<(), FaultKind> {
        for at in first..first + count {
            let awaited = &mut self.vectors_awaited[usize::from(at)];
            if awaited[1 - queue] > 0 {
                return Err(FaultKind::MissingWait(Register::Vector(at)));
            }
            awaited[queue] += 1;
        }
        Ok(())
    }

    /// Marks vector registers as awaited from both queues, which they must not be yet from any.
    pub(crate) fn await_flat(&mut self, first: u16, count: u16) -> Result<(), FaultKind> {
        for at in first..first + count {
            self.vector(at)?;
            self.vectors_awaited[usize::from(at)] = [1, 1];
        }
        Ok(())
    }

    /// Marks scalar registers as awaited, which they must not be yet.
    pub(crate) fn await_scalars(&mut self, first: u8, count: u8) -> Result<(), FaultKind> {
        for at in first..first + count {
            self.scalar(at)?;
        }
        self.scalars_awaited[usize::from(first)..usize::from(first + count)].fill(1);
        Ok(())
    }

    /// Takes a load's mark off vector registers.
    pub(crate) fn vectors_arrived(&mut self, first: u16, count: u16, queue: usize) {
        for awaited in &mut self.vectors_awaited[usize::from(first)..usize::from(first + count)] {
            awaited[queue] -= 1;
        }
    }

    /// Takes a wait's mark off scalar registers.
    pub(crate) fn scalars_arrived(&mut self, first: u8, count: u8) {
        self.scalars_awaited[usize::from(first)..usize::from(first + count)].fill(0);
    }
}

/// Puts `from` into `to` in the lanes of `mask`.
pub(crate) fn blend(to: &mut Lanes, from: &Lanes, mask: u64) {
    if mask == u64::MAX {
        *to = *from;
        return;
    }
    for lane in 0..LANES {
        let keep = ((mask >> lane & 1) as u32).wrapping_sub(1);
        to[lane] = to[lane] & keep | from[lane] & !keep;
    }
}
