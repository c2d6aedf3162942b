//! Boards that are simulated, and what they tell of themselves.

use tandem_gfxsim::Target;

use crate::bindings::*;

/// A kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Board {
    /// What HIP calls it, with a word in front that no board has: what runs here proves nothing of a board.
    pub(crate) name: &'static str,
    pub(crate) target: Target,
    pub(crate) compute_units: i32,
    pub(crate) clock_khz: i32,
    pub(crate) memory_bytes: u64,
}

const GIB: u64 = 1 << 30;

/// Kinds by the word that names them in settings.
const BOARDS: [(&str, Board); 4] = [
    ("MI300X", board("simulated AMD Instinct MI300X", Target::Gfx942, 304, 2_100_000, 192 * GIB)),
    ("MI325X", board("simulated AMD Instinct MI325X", Target::Gfx942, 304, 2_100_000, 256 * GIB)),
    ("MI350X", board("simulated AMD Instinct MI350X", Target::Gfx950, 256, 2_200_000, 288 * GIB)),
    ("MI355X", board("simulated AMD Instinct MI355X", Target::Gfx950, 256, 2_400_000, 288 * GIB)),
];

const fn board(
    name: &'static str,
    target: Target,
    compute_units: i32,
    clock_khz: i32,
    memory_bytes: u64,
) -> Board {
    Board { name, target, compute_units, clock_khz, memory_bytes }
}

impl Board {
    /// The board that a word of the settings names.
    pub(crate) fn named(word: &str) -> Option<Board> {
        let word = match word {
            "gfx942" => "MI300X",
            "gfx950" => "MI355X",
            other => other,
        };
        BOARDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, board)| *board)
    }

    /// An attribute of the board with an ordinal; none for what HIP does not know or the simulation does not tell.
    pub(crate) fn attribute(&self, attribute: hipDeviceAttribute_t, ordinal: usize) -> Option<i32> {
        let lds_bytes = self.target.lds_bytes() as i32;
        Some(match attribute {
            hipDeviceAttributeMultiprocessorCount
            | hipDeviceAttributePhysicalMultiProcessorCount => self.compute_units,
            hipDeviceAttributeWarpSize => 64,
            hipDeviceAttributeClockRate | hipDeviceAttributeClockInstructionRate => self.clock_khz,
            hipDeviceAttributeMemoryBusWidth => 8192,
            hipDeviceAttributeL2CacheSize => 4 << 20,
            hipDeviceAttributeMaxThreadsPerBlock
            | hipDeviceAttributeMaxBlockDimX
            | hipDeviceAttributeMaxBlockDimY
            | hipDeviceAttributeMaxBlockDimZ => 1024,
            hipDeviceAttributeMaxGridDimX => i32::MAX,
            hipDeviceAttributeMaxGridDimY | hipDeviceAttributeMaxGridDimZ => 65536,
            hipDeviceAttributeMaxThreadsPerMultiProcessor => 2048,
            hipDeviceAttributeMaxRegistersPerBlock
            | hipDeviceAttributeMaxRegistersPerMultiprocessor => 65536,
            hipDeviceAttributeMaxSharedMemoryPerBlock
            | hipDeviceAttributeSharedMemPerBlockOptin
            | hipDeviceAttributeSharedMemPerMultiprocessor
            | hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => lds_bytes,
            hipDeviceAttributeComputeCapabilityMajor => 9,
            hipDeviceAttributeComputeCapabilityMinor => match self.target {
                Target::Gfx942 => 4,
                Target::Gfx950 => 5,
            },
            hipDeviceAttributeAsyncEngineCount
            | hipDeviceAttributeCanMapHostMemory
            | hipDeviceAttributeCanUseHostPointerForRegisteredMem
            | hipDeviceAttributeConcurrentKernels
            | hipDeviceAttributeFineGrainSupport
            | hipDeviceAttributeUnifiedAddressing => 1,
            hipDeviceAttributeCooperativeLaunch
            | hipDeviceAttributeIntegrated
            | hipDeviceAttributeManagedMemory
            | hipDeviceAttributeMemoryPoolsSupported
            | hipDeviceAttributePageableMemoryAccess
            | hipDeviceAttributePciDeviceId
            | hipDeviceAttributePciDomainID => 0,
            hipDeviceAttributePciBusId => i32::try_from(ordinal).ok()? + 1,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_boards() {
        assert_eq!(Board::named("gfx942").map(|b| b.name), Some("simulated AMD Instinct MI300X"));
        assert_eq!(Board::named("gfx950").map(|b| b.name), Some("simulated AMD Instinct MI355X"));
        assert_eq!(Board::named("mi325x").map(|b| b.memory_bytes), Some(256 << 30));
        assert_eq!(Board::named("gfx90a"), None);
        assert_eq!(Board::named(""), None);
    }

    #[test]
    fn attributes_are_those_of_the_part() {
        let small = Board::named("MI300X").expect("known");
        let large = Board::named("MI355X").expect("known");
        for (attribute, values) in [
            (hipDeviceAttributeMultiprocessorCount, [304, 256]),
            (hipDeviceAttributeMaxSharedMemoryPerBlock, [64 << 10, 160 << 10]),
            (hipDeviceAttributeWarpSize, [64, 64]),
            (hipDeviceAttributeComputeCapabilityMinor, [4, 5]),
        ] {
            let found = [small, large].map(|board| board.attribute(attribute, 0));
            assert_eq!(found, values.map(Some));
        }
        assert_eq!(small.attribute(hipDeviceAttributeMaxTexture2DWidth, 0), None);
    }
}
