//! A decoded instruction.

use super::{Line, Modifiers, Operand};
use crate::Target;
use crate::class::{cross_lane, flow, lds, matrix, memory, packed, scalar, scalar_memory, vector};

/// An instruction with everything resolved that does not depend on registers.
pub(crate) struct Instruction {
    /// Address in the code object.
    pub(crate) pc: u64,
    /// Address of what follows in memory.
    pub(crate) next_pc: u64,
    /// Address that a branch may go to.
    pub(crate) target_pc: Option<u64>,
    /// Index of what follows in memory.
    pub(crate) next: Option<u32>,
    /// Index of the instruction that a branch may go to.
    pub(crate) target: Option<u32>,
    /// As the disassembler prints it.
    pub(crate) text: String,
    /// The mnemonic without the encoding's suffix.
    pub(crate) name: String,
    /// The highest vector register that it names, and one.
    pub(crate) vector_registers: u16,
    pub(crate) operation: Operation,
}

/// What an instruction does, by class.
pub(crate) enum Operation {
    Flow(flow::Flow),
    Scalar(scalar::Scalar),
    ScalarMemory(scalar_memory::ScalarMemory),
    Vector(Box<vector::Vector>),
    Packed(Box<packed::Packed>),
    CrossLane(cross_lane::CrossLane),
    Lds(Box<lds::LdsAccess>),
    Memory(Box<memory::MemoryAccess>),
    Matrix(Box<matrix::Matrix>),
}

/// What a class needs to know of an instruction to decode it.
pub(crate) struct Parts<'a> {
    pub(crate) name: &'a str,
    /// `sdwa`, `dpp`, or another suffix of the encoding, or nothing.
    pub(crate) encoding: &'a str,
    pub(crate) operands: Vec<Operand>,
    pub(crate) modifiers: Modifiers<'a>,
    pub(crate) target: Target,
}

impl Instruction {
    /// Whether it takes part in an exchange with other workgroups or launches.
    pub(crate) fn communicates(&self) -> bool {
        matches!(&self.operation, Operation::Memory(access) if access.communicates())
    }
}

/// Decodes a line, or says what of it has no meaning here.
pub(crate) fn decode(line: &Line<'_>, target: Target) -> Result<Instruction, String> {
    let (name, encoding) = split_suffix(line.mnemonic);
    let next_pc = line.pc + 4 * line.words.len() as u64;
    let mut target_pc = None;
    let mut vector_registers = 0;
    let operation = if let Some(flow) = flow::decode(line, target)? {
        if flow.is_relative() {
            target_pc = Some(next_pc.wrapping_add_signed(4 * i64::from(line.immediate())));
        }
        Operation::Flow(flow)
    } else {
        let operands: Vec<Operand> =
            line.operands.iter().map(|text| Operand::parse(text)).collect::<Result<_, _>>()?;
        vector_registers = operands.iter().map(Operand::vector_end).max().unwrap_or(0);
        let modifiers = Modifiers::new(&line.modifiers);
        let mut parts = Parts { name, encoding, operands, modifiers, target };
        let operation = by_class(&mut parts)?;
        parts.modifiers.finish()?;
        operation
    };
    Ok(Instruction {
        pc: line.pc,
        next_pc,
        target_pc,
        next: None,
        target: None,
        text: line.text.to_owned(),
        name: name.to_owned(),
        vector_registers,
        operation,
    })
}

fn by_class(parts: &mut Parts<'_>) -> Result<Operation, String> {
    let (family, _) = parts.name.split_once('_').unwrap_or_default();
    match family {
        "s" => match scalar_memory::decode(parts)? {
            Some(access) => Ok(Operation::ScalarMemory(access)),
            None => scalar::decode(parts).map(Operation::Scalar),
        },
        "ds" => match cross_lane::decode(parts)? {
            Some(movement) => Ok(Operation::CrossLane(movement)),
            None => lds::decode(parts).map(|access| Operation::Lds(Box::new(access))),
        },
        "v" => {
            if parts.name.starts_with("v_mfma_") {
                return matrix::decode(parts).map(|m| Operation::Matrix(Box::new(m)));
            }
            if let Some(movement) = cross_lane::decode(parts)? {
                return Ok(Operation::CrossLane(movement));
            }
            if let Some(packed) = packed::decode(parts)? {
                return Ok(Operation::Packed(Box::new(packed)));
            }
            vector::decode(parts).map(|v| Operation::Vector(Box::new(v)))
        }
        "global" | "flat" | "scratch" | "buffer" => {
            memory::decode(parts).map(|access| Operation::Memory(Box::new(access)))
        }
        _ => Err("the mnemonic is not modelled".into()),
    }
}

/// A mnemonic and the suffix that names its encoding.
fn split_suffix(mnemonic: &str) -> (&str, &str) {
    for suffix in ["_e32", "_e64", "_sdwa", "_dpp"] {
        if let Some(name) = mnemonic.strip_suffix(suffix) {
            return (name, &suffix[1..]);
        }
    }
    (mnemonic, "")
}
