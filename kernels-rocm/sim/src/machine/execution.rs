//! One instruction of one wave.

use super::die::Die;
use super::lds::Lds;
use super::memory::View;
use super::wave::{State, Wave};
use crate::class::flow::{Flow, Next};
use crate::decode::{Instruction, Operation};
use crate::fault::FaultKind;
use crate::schedule::Schedule;
use crate::{CodeObject, Target};

/// Counts while a launch runs.
#[derive(Default)]
pub(crate) struct Tally {
    /// Runs of each instruction of the code object.
    pub(crate) runs: Vec<u64>,
    pub(crate) matrix_cycles: u64,
    pub(crate) lds_passes: u64,
    pub(crate) lds_ideal_passes: u64,
}

/// A wave and all that an instruction of it can touch.
pub(crate) struct Step<'a> {
    pub(crate) wave: &'a mut Wave,
    pub(crate) lds: &'a mut Lds,
    pub(crate) memory: &'a View<'a>,
    /// The cache of the die, where caches are modelled.
    pub(crate) die: Option<&'a mut Die>,
    pub(crate) tally: &'a mut Tally,
    pub(crate) schedule: &'a Schedule,
    pub(crate) object: &'a CodeObject,
    /// Address of the code object in memory.
    pub(crate) base: u64,
    /// Steps so far, which pass for the time.
    pub(crate) clock: u64,
    /// The instruction that is at fault when it is not the wave's own.
    pub(crate) blame: Option<u32>,
}

impl Step<'_> {
    pub(crate) fn target(&self) -> Target {
        self.object.target()
    }

    /// Part of a lane's scratch memory.
    pub(crate) fn scratch(
        &mut self,
        lane: usize,
        address: u64,
        bytes: u32,
    ) -> Result<&mut [u8], FaultKind> {
        let each = self.wave.scratch.len() / super::LANES;
        if address.saturating_add(bytes.into()) > each as u64 {
            return Err(FaultKind::ScratchOutOfBounds {
                lane: lane as u32,
                address,
                size: each as u32,
            });
        }
        let from = lane * each + address as usize;
        Ok(&mut self.wave.scratch[from..from + bytes as usize])
    }

    /// Runs instructions until the wave waits, ends, or has made `most` steps; how many there were.
    pub(crate) fn run(&mut self, most: u64) -> Result<u64, FaultKind> {
        for step in 0..most {
            let instruction = &self.object.instructions()[self.wave.at as usize];
            self.tally.runs[self.wave.at as usize] += 1;
            self.clock += 1;
            let next = self.execute(instruction)?;
            let to = match next {
                Next::Follow | Next::Barrier => {
                    instruction.next.ok_or(FaultKind::NoCode(instruction.next_pc))
                }
                Next::Branch => instruction
                    .target
                    .ok_or(FaultKind::NoCode(instruction.target_pc.unwrap_or_default())),
                Next::Jump(address) => self
                    .object
                    .instruction_at(address.wrapping_sub(self.base))
                    .ok_or(FaultKind::NoCode(address)),
                Next::End => {
                    self.wave.state = State::Ended;
                    return Ok(step + 1);
                }
            };
            self.wave.at = to?;
            if next == Next::Barrier {
                self.wave.state = State::AtBarrier;
                return Ok(step + 1);
            }
        }
        Ok(most)
    }

    fn execute(&mut self, instruction: &Instruction) -> Result<Next, FaultKind> {
        match &instruction.operation {
            Operation::Flow(flow) => return self.flow(flow, instruction),
            Operation::Scalar(scalar) => scalar.execute(self.wave)?,
            Operation::ScalarMemory(access) => access.execute(self)?,
            Operation::Vector(vector) => vector.execute(self.wave)?,
            Operation::Packed(packed) => packed.execute(self.wave)?,
            Operation::CrossLane(movement) => movement.execute(self)?,
            Operation::Lds(access) => access.execute(self)?,
            Operation::Memory(access) => access.execute(self)?,
            Operation::Matrix(matrix) => matrix.execute(self)?,
        }
        Ok(Next::Follow)
    }

    fn flow(&mut self, flow: &Flow, instruction: &Instruction) -> Result<Next, FaultKind> {
        if matches!(flow, Flow::End) {
            if self.is_filling_lds() {
                return Err(FaultKind::EndInFlight);
            }
            self.wait(0, 0)?;
            self.wait(1, 0)?;
        }
        flow.execute(self, self.base.wrapping_add(instruction.next_pc))
    }
}
