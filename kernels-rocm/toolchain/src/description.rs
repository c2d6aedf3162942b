//! What a code object says of its kernels.

use object::elf::FileHeader64;
use object::read::elf::{ElfFile, FileHeader as _, SectionHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _};
use serde::Deserialize;

use crate::Kernel;

/// The note that has the metadata, as the ELF's vendor numbers it.
const METADATA: u32 = 32;

/// The metadata of code objects, version 5, as far as we read it.
#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "amdhsa.target")]
    target: String,
    #[serde(rename = "amdhsa.kernels")]
    kernels: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".symbol")]
    symbol: String,
    #[serde(rename = ".max_flat_workgroup_size")]
    threads: u32,
    #[serde(rename = ".vgpr_count")]
    vgprs: u32,
    #[serde(rename = ".agpr_count")]
    agprs: u32,
    #[serde(rename = ".sgpr_count")]
    sgprs: u32,
    #[serde(rename = ".group_segment_fixed_size")]
    lds_bytes: u32,
    #[serde(rename = ".private_segment_fixed_size")]
    scratch_bytes: u32,
    #[serde(rename = ".uses_dynamic_stack")]
    has_stack: bool,
    #[serde(rename = ".vgpr_spill_count")]
    vgpr_spills: u32,
    #[serde(rename = ".sgpr_spill_count")]
    sgpr_spills: u32,
    #[serde(rename = ".kernarg_segment_size")]
    kernarg_bytes: u32,
    #[serde(rename = ".args", default)]
    arguments: Vec<Argument>,
}

#[derive(Deserialize)]
struct Argument {
    #[serde(rename = ".offset")]
    offset: u32,
    #[serde(rename = ".size")]
    bytes: u32,
    /// `hidden_…` for what the runtime adds.
    #[serde(rename = ".value_kind")]
    kind: String,
}

type Elf<'a> = ElfFile<'a, FileHeader64<LittleEndian>>;

/// The kernels of an object for `target`, in order of name.
///
/// # Errors
/// An object that is damaged, for another target, or of another kind than the runtime loads; a kernel
/// whose stack has no bound.
pub fn describe(bytes: &[u8], target: &str) -> Result<Vec<Kernel>, String> {
    let elf = Elf::parse(bytes).map_err(|error| format!("not a code object: {error}"))?;
    let metadata = metadata_of(&elf, bytes)?;
    let expected = format!("amdgcn-amd-amdhsa--{target}");
    if metadata.target != expected {
        return Err(format!("the object is for {}, not {expected}", metadata.target));
    }
    let mut kernels = metadata
        .kernels
        .iter()
        .map(|entry| kernel_of(&elf, entry, target))
        .collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

fn metadata_of(elf: &Elf<'_>, bytes: &[u8]) -> Result<Metadata, String> {
    let damaged = |error: object::Error| format!("damaged code object: {error}");
    let endian = LittleEndian;
    for section in elf.elf_section_table().iter() {
        let Some(mut notes) = section.notes(endian, bytes).map_err(damaged)? else { continue };
        while let Some(note) = notes.next().map_err(damaged)? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == METADATA {
                return rmp_serde::from_slice(note.desc())
                    .map_err(|error| format!("damaged metadata: {error}"));
            }
        }
    }
    Err(format!("a code object without metadata, of type {}", elf.elf_header().e_type(endian)))
}

fn kernel_of(elf: &Elf<'_>, entry: &Entry, target: &str) -> Result<Kernel, String> {
    if entry.has_stack {
        return Err(format!("kernel {} has a stack without bound", entry.name));
    }
    let own = entry.arguments.iter().filter(|argument| !argument.kind.starts_with("hidden_"));
    let mut kernel = Kernel {
        name: entry.name.clone(),
        threads: entry.threads,
        vgprs: entry.vgprs,
        agprs: entry.agprs,
        sgprs: entry.sgprs,
        lds_bytes: entry.lds_bytes,
        scratch_bytes: entry.scratch_bytes,
        vgpr_spills: entry.vgpr_spills,
        sgpr_spills: entry.sgpr_spills,
        kernarg_bytes: entry.kernarg_bytes,
        arguments: own.map(|argument| (argument.offset, argument.bytes)).collect(),
        float_mode: float_mode(elf, &entry.symbol)?,
        occupancy: 0,
    };
    kernel.occupancy = occupancy(&kernel, target);
    Ok(kernel)
}

/// From the kernel's descriptor, 64 bytes; the first resource word is at byte 48.
fn float_mode(elf: &Elf<'_>, symbol: &str) -> Result<u32, String> {
    let missing = || format!("the object has no descriptor {symbol}");
    let found = elf.dynamic_symbols().find(|s| s.name() == Ok(symbol)).ok_or_else(missing)?;
    let section = found.section_index().ok_or_else(missing)?;
    let section = elf.section_by_index(section).map_err(|_| missing())?;
    let descriptor = section.data_range(found.address(), 64).ok().flatten().ok_or_else(missing)?;
    let word = descriptor[48..52].try_into().expect("four bytes");
    Ok(u32::from_le_bytes(word) >> 12 & 0xFF)
}

/// Waves that fit one of the four SIMDs of a unit.
fn occupancy(kernel: &Kernel, target: &str) -> u32 {
    // Registers of a SIMD, and the steps in which waves get them.
    let by_vgprs = 512 / kernel.vgprs.max(1).next_multiple_of(8);
    let by_sgprs = 800 / kernel.sgprs.max(1).next_multiple_of(16);
    let waves = kernel.threads.div_ceil(64);
    let lds = if target == "gfx950" { 160 << 10 } else { 64 << 10 };
    let blocks = lds / kernel.lds_bytes.max(1);
    let by_lds = blocks.saturating_mul(waves).div_ceil(4);
    by_vgprs.min(by_sgprs).min(by_lds).min(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_refused() {
        for bytes in [&b""[..], b"\x7fELF", &[0; 4096]] {
            assert!(describe(bytes, "gfx942").unwrap_err().starts_with("not a code object"));
        }
    }
}
