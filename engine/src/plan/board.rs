//! Boards the planner knows: memory, what the matrix units read, and the settings each starts with.

use tandem_hal::{Capabilities, Dialect};

use crate::error::{Error, Result, printable};

/// An instruction set and what its units can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// Its name, such as `sm_90` or `gfx942`.
    pub name: &'static str,
    /// What the hardware can do.
    pub capabilities: Capabilities,
}

/// How FP4 experts are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpertPath {
    /// By FP4 matrix units.
    Fp4Units,
    /// By FP8 matrix units, each code expanded to FP8 in registers, which is exact.
    ExpandToFp8(Dialect),
}

const fn architecture(
    name: &'static str,
    dialect: Dialect,
    fp4_units: bool,
    shared_memory_bytes: u64,
    lanes: u32,
) -> Architecture {
    let capabilities = Capabilities { dialect, fp4_units, shared_memory_bytes, lanes };
    Architecture { name, capabilities }
}

const SM_90: Architecture = architecture("sm_90", Dialect::Fn, false, 232_448, 32);
const SM_100: Architecture = architecture("sm_100", Dialect::Fn, true, 232_448, 32);
const SM_103: Architecture = architecture("sm_103", Dialect::Fn, true, 232_448, 32);
const GFX942: Architecture = architecture("gfx942", Dialect::Fnuz, false, 65_536, 64);
const GFX950: Architecture = architecture("gfx950", Dialect::Fn, true, 163_840, 64);

impl Architecture {
    /// Every architecture with kernels.
    pub const ALL: &[Self] = &[SM_90, SM_100, SM_103, GFX942, GFX950];

    /// The architecture a driver names, with or without feature flags: `gfx942:sramecc+:xnack-`,
    /// `sm_90a`.
    ///
    /// # Errors
    /// A name without kernels, listing those that have some.
    pub fn parse(name: &str) -> Result<Self> {
        let base = name.split(':').next().unwrap_or_default().to_ascii_lowercase();
        // NVIDIA marks code for one generation only with a letter; AMD has no such letters.
        let plain = match base.strip_prefix("sm_") {
            Some(_) => base.strip_suffix(['a', 'f']).unwrap_or(&base),
            None => base.as_str(),
        };
        let found = Self::ALL.iter().find(|known| known.name == plain);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|known| known.name).collect();
            let problem =
                format!("no kernels for {}; known: {}", printable(name), known.join(", "));
            Error::argument("architecture", problem)
        })
    }

    /// How FP4 experts run here.
    pub fn expert_path(&self) -> ExpertPath {
        match self.capabilities {
            Capabilities { fp4_units: true, .. } => ExpertPath::Fp4Units,
            Capabilities { dialect, .. } => ExpertPath::ExpandToFp8(dialect),
        }
    }
}

/// Where the n-gram tables lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In device memory, whole on every rank.
    Device,
    /// In pinned host memory, one copy per node.
    Host,
}

/// A board and what the planner assumes for it unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    /// Name.
    pub name: String,
    /// Instruction set.
    pub architecture: Architecture,
    /// Memory a program finds, bytes.
    pub memory_bytes: u64,
    /// Ranks that share one copy of the model.
    pub tensor_parallel: usize,
    /// Where the n-gram tables lie.
    pub engram: Placement,
    /// Sequences run at once.
    pub sequences: u64,
    /// Tokens of one step.
    pub step_tokens: u64,
    /// Part of the memory the engine may fill.
    pub utilisation: f64,
    /// Settings that are not sizes.
    pub notes: &'static str,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A line of the table: the names, the shortest last, and the settings recipes start with. Engram
/// tables start on the host everywhere.
struct Row {
    names: &'static [&'static str],
    architecture: Architecture,
    memory_bytes: u64,
    tensor_parallel: usize,
    sequences: u64,
    step_tokens: u64,
    utilisation: f64,
    notes: &'static str,
}

const BLACKWELL: &str = "MXFP4 index keys; DEP with tables across replicas is the other strategy";
const AMD: &str = "no bounded replay; adaptive verification off";

/// The H200's memory is what its driver reported free. No other board was at hand: theirs is the
/// stated capacity, in decimal gigabytes for NVIDIA and one GiB below the stated for AMD, which a
/// driver exceeds.
const ROWS: &[Row] = &[
    Row {
        names: &["nvidia-h100", "h100"],
        architecture: SM_90,
        memory_bytes: 80_000_000_000,
        tensor_parallel: 8,
        sequences: 1024,
        step_tokens: 8192,
        utilisation: 0.92,
        notes: "smallest board with 8-bit matrix units that can hold the model",
    },
    Row {
        names: &["nvidia-h200", "h200"],
        architecture: SM_90,
        memory_bytes: 143_156 * MIB,
        tensor_parallel: 4,
        sequences: 1024,
        step_tokens: 8192,
        utilisation: 0.92,
        notes: "no scheduler cap",
    },
    Row {
        names: &["nvidia-b200", "b200"],
        architecture: SM_100,
        memory_bytes: 192_000_000_000,
        tensor_parallel: 2,
        sequences: 128,
        step_tokens: 16_384,
        utilisation: 0.92,
        notes: BLACKWELL,
    },
    Row {
        names: &["nvidia-b300", "b300"],
        architecture: SM_103,
        memory_bytes: 288_000_000_000,
        tensor_parallel: 2,
        sequences: 256,
        step_tokens: 8192,
        utilisation: 0.92,
        notes: BLACKWELL,
    },
    Row {
        names: &["nvidia-gb200", "gb200"],
        architecture: SM_100,
        memory_bytes: 192_000_000_000,
        tensor_parallel: 2,
        sequences: 128,
        step_tokens: 16_384,
        utilisation: 0.92,
        notes: BLACKWELL,
    },
    Row {
        names: &["nvidia-gb300", "gb300"],
        architecture: SM_103,
        memory_bytes: 288_000_000_000,
        tensor_parallel: 2,
        sequences: 256,
        step_tokens: 8192,
        utilisation: 0.92,
        notes: BLACKWELL,
    },
    Row {
        names: &["amd-mi300x", "mi300x", "mi300"],
        architecture: GFX942,
        memory_bytes: 191 * GIB,
        tensor_parallel: 4,
        sequences: 1024,
        step_tokens: 16_384,
        utilisation: 0.9,
        notes: AMD,
    },
    Row {
        names: &["amd-mi325x", "mi325x", "mi325"],
        architecture: GFX942,
        memory_bytes: 255 * GIB,
        tensor_parallel: 4,
        sequences: 1024,
        step_tokens: 16_384,
        utilisation: 0.9,
        notes: AMD,
    },
    Row {
        names: &["amd-mi350x", "mi350x", "mi350"],
        architecture: GFX950,
        memory_bytes: 287 * GIB,
        tensor_parallel: 2,
        sequences: 128,
        step_tokens: 16_384,
        utilisation: 0.9,
        notes: AMD,
    },
    Row {
        names: &["amd-mi355x", "mi355x", "mi355"],
        architecture: GFX950,
        memory_bytes: 287 * GIB,
        tensor_parallel: 2,
        sequences: 128,
        step_tokens: 16_384,
        utilisation: 0.9,
        notes: AMD,
    },
];

/// Boards people ask for that the model does not run on, and why.
const REFUSED: &[(&str, &str)] = &[
    ("a100", "sm_80 has no 8-bit floating-point matrix units"),
    ("rtx-4090", "24 GB a board and no fast link between boards"),
    ("rtx-5090", "32 GB a board and no fast link between boards"),
    ("rtx-pro-6000", "sm_120 has 99 KiB of shared memory and no kernels here"),
    ("dgx-spark", "128 GB cannot hold 286 GiB of weights"),
    ("strix-halo", "128 GB cannot hold 286 GiB of weights"),
];

impl Row {
    fn board(&self) -> Board {
        Board {
            name: self.names[0].to_owned(),
            architecture: self.architecture,
            memory_bytes: self.memory_bytes,
            tensor_parallel: self.tensor_parallel,
            engram: Placement::Host,
            sequences: self.sequences,
            step_tokens: self.step_tokens,
            utilisation: self.utilisation,
            notes: self.notes,
        }
    }
}

impl Board {
    /// Every board of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Row::board)
    }

    /// A board by name; capitals and the maker's prefix do not matter.
    ///
    /// # Errors
    /// An unknown name, an architecture in place of a board, or a board the model does not run on.
    pub fn named(name: &str) -> Result<Self> {
        let wanted = name.to_ascii_lowercase();
        if let Some(row) = ROWS.iter().find(|row| row.names.contains(&wanted.as_str())) {
            return Ok(row.board());
        }
        let refuse = |problem| Err(Error::argument("--device", problem));
        let bare = wanted.trim_start_matches("nvidia-").trim_start_matches("amd-");
        if let Some((_, reason)) = REFUSED.iter().find(|(known, _)| *known == bare) {
            return refuse(format!("{} is not served: {reason}", printable(name)));
        }
        let names = |rows: &mut dyn Iterator<Item = &Row>| {
            rows.map(|row| row.names[0]).collect::<Vec<_>>().join(", ")
        };
        match Architecture::parse(name) {
            Ok(architecture) => {
                let mut rows = ROWS.iter().filter(|row| row.architecture == architecture);
                refuse(format!(
                    "{} is an architecture; name a board: {}",
                    printable(name),
                    names(&mut rows)
                ))
            }
            Err(_) => refuse(format!(
                "unknown board {}; known: {}",
                printable(name),
                names(&mut ROWS.iter())
            )),
        }
    }
}

/// Some boards of one kind in one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Boards {
    /// The kind.
    pub board: Board,
    /// How many.
    pub count: usize,
}

impl Boards {
    /// Reads `NAME`, `NAMExN` or `NAME*N`, such as `nvidia-h200x8` or `mi355x*4`.
    ///
    /// # Errors
    /// As [`Board::named`], and a count outside 1 to 1024.
    pub fn parse(text: &str) -> Result<Self> {
        let counted = text.rsplit_once(['x', 'X', '*']).filter(|(_, count)| {
            !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
        });
        let Some((name, count)) = counted else {
            return Ok(Self { board: Board::named(text)?, count: 1 });
        };
        let board = Board::named(name)?;
        match count.parse() {
            Ok(count @ 1..=1024) => Ok(Self { board, count }),
            _ => {
                let problem = format!("{} boards; give 1 to 1024", printable(count));
                Err(Error::argument("--device", problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_counts() {
        for (text, name, count) in [
            ("nvidia-h200x8", "nvidia-h200", 8),
            ("H200", "nvidia-h200", 1),
            ("mi350x", "amd-mi350x", 1),
            ("mi355x", "amd-mi355x", 1),
            ("mi355x*4", "amd-mi355x", 4),
            ("amd-mi355xx2", "amd-mi355x", 2),
            ("mi300x8", "amd-mi300x", 8),
        ] {
            let boards = Boards::parse(text).unwrap();
            assert_eq!((boards.board.name.as_str(), boards.count), (name, count), "{text}");
        }
        for text in ["", "x8", "h200x0", "h200x99999", "tpu", "a100x8", "gfx942", "\u{1}"] {
            let message = Boards::parse(text).unwrap_err().to_string();
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        let message = Boards::parse("gfx942x8").unwrap_err().to_string();
        assert!(message.ends_with("name a board: amd-mi300x, amd-mi325x"), "{message}");
        assert!(Board::named("nvidia-a100").unwrap_err().to_string().contains("sm_80"));
    }

    #[test]
    fn c092_fp4_on_gfx942() {
        for name in ["gfx942", "gfx942:sramecc+:xnack-", "GFX942:xnack+"] {
            let architecture = Architecture::parse(name).unwrap();
            assert!(!architecture.capabilities.fp4_units);
            assert_eq!(architecture.capabilities.dialect, Dialect::Fnuz);
            assert_eq!(architecture.capabilities.shared_memory_bytes, 65_536);
            assert_eq!(architecture.expert_path(), ExpertPath::ExpandToFp8(Dialect::Fnuz));
        }
        let gfx950 = Architecture::parse("gfx950:sramecc+:xnack-").unwrap();
        assert!(gfx950.capabilities.fp4_units);
        assert_eq!(gfx950.capabilities.dialect, Dialect::Fn);
        assert_eq!(gfx950.capabilities.shared_memory_bytes, 163_840);
        assert_eq!(gfx950.expert_path(), ExpertPath::Fp4Units);
        let hopper = Architecture::parse("sm_90a").unwrap();
        assert_eq!(hopper.expert_path(), ExpertPath::ExpandToFp8(Dialect::Fn));
        assert_eq!(hopper.capabilities.shared_memory_bytes, 232_448);
        for name in ["gfx90a", "gfx9420", "gfx942a", "sm_80", "sm_900", "", ":xnack-"] {
            let message = Architecture::parse(name).unwrap_err().to_string();
            assert!(message.contains("no kernels for"), "{message}");
            assert!(message.contains("gfx942"), "{message}");
        }
    }
}
