//! Processors that are modelled.

use std::fmt;

/// A processor, and with it an instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// MI300X and MI325X (CDNA3): FP8 in the FNUZ dialect, 64 KiB of LDS.
    Gfx942,
    /// MI350X and MI355X (CDNA4): FP8 as OCP has it, scaled matrix products, 160 KiB of LDS.
    Gfx950,
}

impl Target {
    /// The target whose number an ELF header's flags hold.
    pub(crate) fn from_elf_flags(flags: u32) -> Option<Self> {
        match flags & 0xff {
            0x4c => Some(Self::Gfx942),
            0x4f => Some(Self::Gfx950),
            _ => None,
        }
    }

    /// The name that compilers know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
        }
    }

    /// LDS that a workgroup may have.
    #[must_use]
    pub fn lds_bytes(self) -> u32 {
        match self {
            Self::Gfx942 => 64 << 10,
            Self::Gfx950 => 160 << 10,
        }
    }

    /// Whether 8-bit floats have the FNUZ dialect: bias one more, no negative zero, 0x80 the one NaN.
    pub(crate) fn is_fnuz(self) -> bool {
        self == Self::Gfx942
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
