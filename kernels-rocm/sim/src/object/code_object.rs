//! A code object, read, decoded and checked once, and run as often as wanted.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use object::elf::{PF_W, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    FileFlags, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind,
};

use super::metadata::Notes;
use super::{Descriptor, KernelNotes, disassemble};
use crate::decode::{Instruction, Line, decode};
use crate::{LoadError, Target};

/// Relocations that linkers leave in code objects: the address of a symbol, and an offset in the module.
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_RELATIVE64: u32 = 13;

/// A code object of one target: its kernels, decoded, and the bytes that go into memory.
pub struct CodeObject {
    target: Target,
    kernels: BTreeMap<String, Kernel>,
    instructions: Vec<Instruction>,
    index: HashMap<u64, u32>,
    vector_registers: u16,
    communicates: bool,
    segments: Vec<Segment>,
    relocations: Vec<(u64, u64)>,
    symbols: HashMap<String, (u64, u64)>,
}

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) notes: KernelNotes,
    pub(crate) descriptor: Descriptor,
    /// Index of the first instruction.
    pub(crate) entry: u32,
}

/// What a kernel takes of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Vector registers of a lane, those for accumulation among them.
    pub vector_registers: u32,
    /// Accumulation registers of a lane.
    pub accumulation_registers: u32,
    /// Scalar registers of a wave.
    pub scalar_registers: u32,
    /// Registers that were spilled.
    pub spills: u32,
    /// LDS that the kernel declares, in bytes.
    pub lds_bytes: u32,
    /// Scratch memory of a lane, in bytes.
    pub scratch_bytes: u32,
}

/// A part of the file that goes into memory.
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_writable: bool,
}

impl CodeObject {
    /// Reads a code object and decodes every function in it.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for what is no code object, for instructions, operands and modifiers without a meaning
    /// here, and when LLVM's disassembler is not installed.
    pub fn load(bytes: &[u8]) -> Result<Self, LoadError> {
        let (elf, target) = parse(bytes)?;
        let functions = functions(&elf)?;
        let text = disassemble(bytes, target)?;
        let instructions = instructions(&text, &functions, target)?;
        let index: HashMap<u64, u32> =
            instructions.iter().zip(0..).map(|(i, at)| (i.pc, at)).collect();
        let mut object = Self {
            target,
            kernels: BTreeMap::new(),
            // The first holds a work item's place.
            vector_registers: instructions
                .iter()
                .map(|i| i.vector_registers)
                .max()
                .unwrap_or(0)
                .max(1),
            communicates: instructions.iter().any(Instruction::communicates),
            segments: segments(&elf)?,
            relocations: relocations(&elf)?,
            symbols: symbols(&elf),
            instructions,
            index,
        };
        object.link();
        for notes in notes(&elf)?.kernels {
            let kernel = object.kernel_of(notes)?;
            object.kernels.insert(kernel.notes.name.clone(), kernel);
        }
        Ok(object)
    }

    /// The target that a file is compiled for, without decoding what is in it.
    ///
    /// # Errors
    ///
    /// [`LoadError::Object`] for what is no code object of a target that is modelled.
    pub fn target_of(bytes: &[u8]) -> Result<Target, LoadError> {
        Ok(parse(bytes)?.1)
    }

    /// Bytes of arguments that a kernel takes from its caller.
    #[must_use]
    pub fn argument_bytes(&self, kernel: &str) -> Option<u64> {
        Some(self.kernel(kernel)?.notes.explicit_bytes())
    }

    /// Work items of a workgroup that a kernel is compiled for, at most.
    #[must_use]
    pub fn workgroup_size(&self, kernel: &str) -> Option<u32> {
        Some(self.kernel(kernel)?.notes.max_workgroup_size)
    }

    /// The target it is compiled for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Names of its kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// What a kernel takes of the hardware.
    #[must_use]
    pub fn resources(&self, kernel: &str) -> Option<Resources> {
        let Kernel { notes, descriptor, .. } = self.kernel(kernel)?;
        Some(Resources {
            vector_registers: notes.vector_registers,
            accumulation_registers: notes.accumulation_registers,
            scalar_registers: notes.scalar_registers,
            spills: notes.vector_spills + notes.scalar_spills,
            lds_bytes: descriptor.lds_bytes,
            scratch_bytes: descriptor.private_bytes,
        })
    }

    /// Offset in the module and size in bytes of a symbol, such as a device variable.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        self.symbols.get(name).copied()
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(name)
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Vector registers that a wave needs, whichever of its functions it runs.
    pub(crate) fn vector_registers(&self) -> u16 {
        self.vector_registers
    }

    /// Whether its waves may do what those of other workgroups or launches wait for: anything beyond plain loads
    /// and stores.
    pub(crate) fn communicates(&self) -> bool {
        self.communicates
    }

    /// Index of the instruction at an address.
    pub(crate) fn instruction_at(&self, address: u64) -> Option<u32> {
        self.index.get(&address).copied()
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Places that hold addresses of the module, and offsets in it that they are to point at.
    pub(crate) fn relocations(&self) -> &[(u64, u64)] {
        &self.relocations
    }

    /// Resolves where execution goes on after each instruction.
    fn link(&mut self) {
        for instruction in &mut self.instructions {
            instruction.next = self.index.get(&instruction.next_pc).copied();
            instruction.target = instruction.target_pc.and_then(|pc| self.index.get(&pc).copied());
        }
    }

    fn kernel_of(&self, notes: KernelNotes) -> Result<Kernel, LoadError> {
        let wrong =
            |reason: &str| LoadError::Kernel { kernel: notes.name.clone(), reason: reason.into() };
        let (address, _) =
            self.symbol(&notes.symbol).ok_or_else(|| wrong("it has no descriptor"))?;
        let bytes =
            self.bytes_at(address).ok_or_else(|| wrong("its descriptor is not in the file"))?;
        let descriptor = Descriptor::read(bytes, address);
        if notes.wavefront_size != 64 {
            return Err(wrong("waves of other than 64 lanes"));
        }
        if let Some(reason) = descriptor.foreign_mode() {
            return Err(wrong(reason));
        }
        if descriptor.uses_dynamic_stack() {
            return Err(wrong("its use of scratch memory is unbounded"));
        }
        let entry =
            self.instruction_at(descriptor.entry).ok_or_else(|| wrong("its entry is no code"))?;
        Ok(Kernel { entry, notes, descriptor })
    }

    fn bytes_at(&self, address: u64) -> Option<&[u8; 64]> {
        self.segments.iter().find_map(|segment| {
            let from = usize::try_from(address.checked_sub(segment.address)?).ok()?;
            segment.bytes.get(from..)?.first_chunk()
        })
    }
}

/// The file's structure, and the target that its header names.
fn parse(bytes: &[u8]) -> Result<(ElfFile64<'_>, Target), LoadError> {
    let elf = ElfFile64::parse(bytes).map_err(|e| LoadError::Object(e.to_string()))?;
    let FileFlags::Elf { e_flags, .. } = elf.flags() else {
        return Err(LoadError::Object("no ELF flags".into()));
    };
    let target = Target::from_elf_flags(e_flags);
    let foreign = || LoadError::Object(format!("ELF flags {e_flags:#x} name another processor"));
    Ok((elf, target.ok_or_else(foreign)?))
}

/// Name and addresses of every function.
fn functions(elf: &ElfFile64<'_>) -> Result<Vec<(Range<u64>, String)>, LoadError> {
    let wrong = |e: object::Error| LoadError::Object(e.to_string());
    let mut found = Vec::new();
    for symbol in
        elf.symbols().chain(elf.dynamic_symbols()).filter(|s| s.kind() == SymbolKind::Text)
    {
        let range = symbol.address()..symbol.address().saturating_add(symbol.size());
        found.push((range, symbol.name().map_err(wrong)?.to_owned()));
    }
    found.sort_by_key(|(range, _)| (range.start, range.end));
    found.dedup_by_key(|(range, _)| range.start);
    Ok(found)
}

/// Every instruction of the functions, in order; what lies between them is padding.
fn instructions(
    text: &str,
    functions: &[(Range<u64>, String)],
    target: Target,
) -> Result<Vec<Instruction>, LoadError> {
    let mut found = Vec::new();
    for line in text.lines().filter_map(Line::parse) {
        let Some((range, name)) = functions.iter().find(|(range, _)| range.contains(&line.pc))
        else {
            continue;
        };
        found.push(decode(&line, target).map_err(|reason| LoadError::Instruction {
            kernel: name.clone(),
            offset: line.pc - range.start,
            text: line.text.to_owned(),
            reason,
        })?);
    }
    Ok(found)
}

fn segments(elf: &ElfFile64<'_>) -> Result<Vec<Segment>, LoadError> {
    let wrong = || LoadError::Object("a segment lies outside the file".into());
    let endian = elf.endian();
    let mut found = Vec::new();
    for header in elf.elf_program_headers().iter().filter(|h| h.p_type(endian) == PT_LOAD) {
        let data = header.data(endian, elf.data()).map_err(|()| wrong())?;
        let size = usize::try_from(header.p_memsz(endian)).map_err(|_| wrong())?;
        // A size that no device has would only exhaust this machine.
        if size > 1 << 30 || size < data.len() {
            return Err(LoadError::Object(format!("a segment of {size} bytes")));
        }
        let mut bytes = data.to_vec();
        bytes.resize(size, 0);
        let is_writable = header.p_flags(endian) & PF_W != 0;
        found.push(Segment { address: header.p_vaddr(endian), bytes, is_writable });
    }
    Ok(found)
}

fn relocations(elf: &ElfFile64<'_>) -> Result<Vec<(u64, u64)>, LoadError> {
    let mut found = Vec::new();
    let Some(relocations) = elf.dynamic_relocations() else { return Ok(found) };
    for (place, relocation) in relocations {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let addend = relocation.addend() as u64;
        let base = match (r_type, relocation.target()) {
            (R_AMDGPU_RELATIVE64, _) => 0,
            (R_AMDGPU_ABS64, RelocationTarget::Symbol(symbol)) => elf
                .dynamic_symbol_table()
                .and_then(|table| object::ObjectSymbolTable::symbol_by_index(&table, symbol).ok())
                .map(|symbol| symbol.address())
                .ok_or_else(|| LoadError::Object("a relocation names no symbol".into()))?,
            (other, _) => return Err(LoadError::Object(format!("a relocation of type {other}"))),
        };
        found.push((place, base.wrapping_add(addend)));
    }
    Ok(found)
}

fn symbols(elf: &ElfFile64<'_>) -> HashMap<String, (u64, u64)> {
    let all = elf.symbols().chain(elf.dynamic_symbols());
    all.filter_map(|s| Some((s.name().ok()?.to_owned(), (s.address(), s.size())))).collect()
}

fn notes(elf: &ElfFile64<'_>) -> Result<Notes, LoadError> {
    /// The type of the note that holds the kernels' metadata.
    const METADATA: u32 = 32;
    let wrong = |what: String| LoadError::Object(what);
    let section = elf.section_by_name(".note").ok_or_else(|| wrong("no notes".into()))?;
    let mut data = section.data().map_err(|e| wrong(e.to_string()))?;
    // A note: sizes of name and contents, type; name and contents, each padded to four bytes.
    while data.len() >= 12 {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| data[at + i])) as usize;
        let (name, size, kind) = (word(0).next_multiple_of(4), word(4), word(8));
        let contents = data
            .get(12 + name..12 + name + size)
            .ok_or_else(|| wrong("a note is cut off".into()))?;
        if kind == METADATA as usize {
            return rmp_serde::from_slice(contents).map_err(|e| wrong(format!("its notes: {e}")));
        }
        data = data.get(12 + name + size.next_multiple_of(4)..).unwrap_or_default();
    }
    Err(wrong("its notes tell no kernels".into()))
}
