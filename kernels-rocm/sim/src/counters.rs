//! What a launch did, in numbers.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Counts of one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions of all waves.
    pub steps: u64,
    /// Instructions by mnemonic, without the encoding's suffix.
    pub instructions: BTreeMap<String, u64>,
    /// Clocks of the matrix units, as if there were one.
    pub matrix_cycles: u64,
    /// Passes of the LDS: for each phase, as many as its busiest bank has different words.
    pub lds_passes: u64,
    /// Passes that there would be without bank conflicts.
    pub lds_ideal_passes: u64,
}

impl Counters {
    /// Instructions whose mnemonic begins with `prefix`.
    #[must_use]
    pub fn count(&self, prefix: &str) -> u64 {
        self.instructions.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, n)| n).sum()
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.matrix_cycles += other.matrix_cycles;
        self.lds_passes += other.lds_passes;
        self.lds_ideal_passes += other.lds_ideal_passes;
        for (name, count) in other.instructions {
            *self.instructions.entry(name).or_default() += count;
        }
    }
}
