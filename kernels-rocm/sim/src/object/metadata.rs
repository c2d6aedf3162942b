//! The notes of a code object: what the compiler tells the runtime about each kernel.

use serde::Deserialize;

/// The notes of all kernels.
#[derive(Deserialize)]
pub(crate) struct Notes {
    #[serde(rename = "amdhsa.kernels", default)]
    pub(crate) kernels: Vec<KernelNotes>,
}

/// The notes of one kernel.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct KernelNotes {
    #[serde(rename = ".name")]
    pub(crate) name: String,
    /// The descriptor's symbol.
    #[serde(rename = ".symbol")]
    pub(crate) symbol: String,
    #[serde(rename = ".args", default)]
    pub(crate) arguments: Vec<Argument>,
    #[serde(rename = ".wavefront_size")]
    pub(crate) wavefront_size: u32,
    #[serde(rename = ".max_flat_workgroup_size")]
    pub(crate) max_workgroup_size: u32,
    /// Vector registers, accumulation registers among them.
    #[serde(rename = ".vgpr_count")]
    pub(crate) vector_registers: u32,
    #[serde(rename = ".agpr_count", default)]
    pub(crate) accumulation_registers: u32,
    #[serde(rename = ".sgpr_count")]
    pub(crate) scalar_registers: u32,
    #[serde(rename = ".vgpr_spill_count", default)]
    pub(crate) vector_spills: u32,
    #[serde(rename = ".sgpr_spill_count", default)]
    pub(crate) scalar_spills: u32,
}

/// An argument of a kernel.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Argument {
    #[serde(rename = ".offset")]
    pub(crate) offset: u64,
    #[serde(rename = ".size")]
    pub(crate) size: u64,
    /// `by_value`, `global_buffer`, or what the runtime is to fill in.
    #[serde(rename = ".value_kind")]
    pub(crate) kind: String,
}

impl Argument {
    /// Whether the runtime fills it in, not the caller.
    pub(crate) fn is_hidden(&self) -> bool {
        self.kind.starts_with("hidden_")
    }
}

impl KernelNotes {
    /// Bytes of the arguments that the caller gives.
    pub(crate) fn explicit_bytes(&self) -> u64 {
        let ends = self.arguments.iter().filter(|a| !a.is_hidden()).map(|a| a.offset + a.size);
        ends.max().unwrap_or(0)
    }
}
