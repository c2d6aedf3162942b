//! From the disassembler's text to typed instructions, once for each code object.

mod instruction;
mod line;
mod modifiers;
mod operand;

pub(crate) use instruction::{Instruction, Operation, Parts, decode};
pub(crate) use line::Line;
pub(crate) use modifiers::Modifiers;
pub(crate) use operand::{Operand, Value};
