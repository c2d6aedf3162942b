//! Branches, waits, barriers and what else steers a wave.

use super::scalar::ScalarSource;
use crate::Target;
use crate::decode::{Line, Operand, Value};
use crate::fault::FaultKind;
use crate::machine::{Step, VCC};

/// An instruction that steers.
#[derive(Debug)]
pub(crate) enum Flow {
    /// What changes nothing here: waiting states, priorities, caches of instructions and constants.
    Nothing,
    End,
    Barrier,
    /// Operations that may stay outstanding, of memory and of LDS.
    Wait {
        memory: usize,
        lds: usize,
    },
    Branch(When),
    /// The address of the next instruction into a pair.
    ProgramCounter(u8),
    /// To an address in a pair; the address behind into another pair.
    Jump {
        to: ScalarSource,
        link: Option<u8>,
    },
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Always,
    Condition(bool),
    VccZero(bool),
    ExecZero(bool),
}

/// Where execution goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Follow,
    /// Where the instruction's own offset leads.
    Branch,
    Jump(u64),
    Barrier,
    End,
}

/// Fields of a wait's immediate that are all ones where nothing is waited for.
fn wait(immediate: u16) -> Flow {
    let memory = usize::from(immediate & 0xf | immediate >> 10 & 0x30);
    let lds = usize::from(immediate >> 8 & 0xf);
    Flow::Wait { memory, lds }
}

/// Decodes a line of this class; none if it is of another.
pub(crate) fn decode(line: &Line<'_>, _: Target) -> Result<Option<Flow>, String> {
    let flow = match line.mnemonic {
        "s_endpgm" => Flow::End,
        "s_barrier" => Flow::Barrier,
        "s_waitcnt" => return Ok(Some(wait(line.immediate() as u16))),
        "s_nop" | "s_sleep" | "s_setprio" | "s_icache_inv" | "s_dcache_inv" | "s_dcache_wb"
        | "s_code_end" | "s_sched_barrier" | "v_nop" | "s_inst_prefetch" | "s_ttracedata" => {
            Flow::Nothing
        }
        "s_branch" => Flow::Branch(When::Always),
        "s_cbranch_scc0" => Flow::Branch(When::Condition(false)),
        "s_cbranch_scc1" => Flow::Branch(When::Condition(true)),
        "s_cbranch_vccz" => Flow::Branch(When::VccZero(true)),
        "s_cbranch_vccnz" => Flow::Branch(When::VccZero(false)),
        "s_cbranch_execz" => Flow::Branch(When::ExecZero(true)),
        "s_cbranch_execnz" => Flow::Branch(When::ExecZero(false)),
        "s_getpc_b64" => Flow::ProgramCounter(pair(line, 0)?),
        "s_setpc_b64" => Flow::Jump { to: source(line, 0)?, link: None },
        "s_swappc_b64" => Flow::Jump { to: source(line, 1)?, link: Some(pair(line, 0)?) },
        _ => return Ok(None),
    };
    if matches!(flow, Flow::End | Flow::Barrier)
        && !(line.operands.is_empty() && line.modifiers.is_empty())
    {
        return Err("an operand where none was expected".into());
    }
    Ok(Some(flow))
}

fn operand(line: &Line<'_>, at: usize) -> Result<Operand, String> {
    Operand::parse(line.operands.get(at).ok_or("an operand is missing")?)
}

fn pair(line: &Line<'_>, at: usize) -> Result<u8, String> {
    match operand(line, at)?.plain()? {
        Value::Scalar { first, count: 2 } => Ok(first),
        _ => Err("a pair of scalar registers was expected".into()),
    }
}

fn source(line: &Line<'_>, at: usize) -> Result<ScalarSource, String> {
    ScalarSource::decode(&operand(line, at)?, 2)
}

impl Flow {
    /// Whether it leads to an offset in its encoding.
    pub(crate) fn is_relative(&self) -> bool {
        matches!(self, Self::Branch(_))
    }

    pub(crate) fn execute(&self, step: &mut Step<'_>, behind: u64) -> Result<Next, FaultKind> {
        match self {
            Self::Nothing => Ok(Next::Follow),
            Self::End => Ok(Next::End),
            Self::Barrier => Ok(Next::Barrier),
            Self::Wait { memory, lds } => {
                // A full field waits for nothing.
                if *memory < 63 {
                    step.wait(0, *memory)?;
                }
                if *lds < 15 {
                    step.wait(1, *lds)?;
                }
                Ok(Next::Follow)
            }
            Self::Branch(when) => Ok(if when.holds(step)? { Next::Branch } else { Next::Follow }),
            Self::ProgramCounter(to) => {
                step.wave.write_scalar_pair(*to, behind)?;
                Ok(Next::Follow)
            }
            Self::Jump { to, link } => {
                let address = to.pair(step.wave)?;
                if let Some(link) = link {
                    step.wave.write_scalar_pair(*link, behind)?;
                }
                Ok(Next::Jump(address))
            }
        }
    }
}

impl When {
    fn holds(self, step: &Step<'_>) -> Result<bool, FaultKind> {
        Ok(match self {
            Self::Always => true,
            Self::Condition(wanted) => step.wave.condition == wanted,
            Self::VccZero(wanted) => (step.wave.scalar_pair(VCC)? == 0) == wanted,
            Self::ExecZero(wanted) => (step.wave.active() == 0) == wanted,
        })
    }
}
