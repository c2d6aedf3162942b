//! Code objects: the ELF files that compilers make.

mod code_object;
mod descriptor;
mod disassembler;
mod metadata;

pub(crate) use code_object::Kernel;
pub use code_object::{CodeObject, Resources};
pub(crate) use descriptor::{Descriptor, UserRegisters};
pub(crate) use disassembler::disassemble;
pub(crate) use metadata::{Argument, KernelNotes};
