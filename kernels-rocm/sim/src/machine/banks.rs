//! What an LDS access costs: lanes are served in phases, and a phase takes as many passes as its busiest bank has
//! different words. Phases and banks of gfx950 are those that HipKittens measured on hardware (its
//! `analysis/paper_experiments/phases`); for wide reads of gfx942 those of
//! 12 bytes are assumed, for other wide accesses neighbouring lanes.

use super::execution::Step;
use super::transfer::{Action, Transfer};
use super::wave::LANES;
use crate::Target;

/// First lanes of the groups of four that are served together by a wide read of 16 bytes.
const WIDE: [[usize; 4]; 4] = [[0, 12, 20, 24], [4, 8, 16, 28], [32, 44, 52, 56], [36, 40, 48, 60]];
/// The same of 12 bytes.
const TRIPLE: [[usize; 2]; 8] =
    [[0, 20], [4, 16], [8, 28], [12, 24], [32, 52], [36, 48], [40, 60], [44, 56]];

/// Number of banks, and the phase of each lane.
fn phases(target: Target, bytes: u32, is_read: bool) -> (u64, [u8; LANES]) {
    let even = |lanes: usize| std::array::from_fn(|lane| (lane / lanes) as u8);
    let groups = |groups: &[&[usize]]| {
        let mut phase = [0; LANES];
        for (at, group) in groups.iter().enumerate() {
            for first in *group {
                phase[*first..first + 4].fill(at as u8);
            }
        }
        phase
    };
    match (target, bytes, is_read) {
        (Target::Gfx950, 16, true) => (64, groups(&WIDE.each_ref().map(|group| &group[..]))),
        (Target::Gfx950, 12, true) | (Target::Gfx942, 12 | 16, true) => {
            (32, groups(&TRIPLE.each_ref().map(|group| &group[..])))
        }
        (Target::Gfx950, 8, true) => (64, even(32)),
        (Target::Gfx950, 0..=4, true) => (64, even(64)),
        (_, 12 | 16, _) => (32, even(8)),
        (_, 8, _) => (32, even(16)),
        _ => (32, even(32)),
    }
}

impl Step<'_> {
    /// Counts the passes of an access to LDS.
    pub(crate) fn count_passes(&mut self, transfer: &Transfer) {
        let is_read = matches!(transfer.action, Action::Load { .. });
        let (banks, phases) = phases(self.target(), transfer.bytes, is_read);
        let count = transfer.bytes.div_ceil(4) as usize;
        for piece in 0..transfer.pieces {
            let mut words = [(0u8, 0u8, 0u64); 4 * LANES];
            let mut used = 0;
            for lane in (0..LANES).filter(|lane| transfer.mask >> lane & 1 != 0) {
                let first = (transfer.addresses[lane] + u64::from(transfer.offsets[piece])) / 4;
                for word in first..first + count as u64 {
                    words[used] = (phases[lane], (word % banks) as u8, word);
                    used += 1;
                }
            }
            // Words of a bank stand together then, and those that several lanes want count once.
            let words = &mut words[..used];
            words.sort_unstable();
            let (mut of_phase, mut of_bank) = ([0u64; 8], 0);
            for (at, (phase, bank, word)) in words.iter().enumerate() {
                let before = at.checked_sub(1).map(|before| words[before]);
                of_bank = match before {
                    Some((p, b, w)) if (p, b) == (*phase, *bank) => of_bank + u64::from(w != *word),
                    _ => 1,
                };
                let most = &mut of_phase[usize::from(*phase)];
                *most = of_bank.max(*most);
            }
            self.tally.lds_passes += of_phase.iter().sum::<u64>();
            self.tally.lds_ideal_passes += of_phase.iter().filter(|most| **most > 0).count() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_partition_the_lanes() {
        for target in [Target::Gfx942, Target::Gfx950] {
            for bytes in [4, 8, 12, 16] {
                for is_read in [true, false] {
                    let (banks, phases) = phases(target, bytes, is_read);
                    let count = usize::from(*phases.iter().max().expect("64 lanes")) + 1;
                    for phase in 0..count {
                        let lanes = phases.iter().filter(|p| usize::from(**p) == phase).count();
                        assert_eq!(lanes, LANES / count, "{target}, {bytes} bytes, phase {phase}");
                        // No phase asks for more words than there are banks.
                        assert!(
                            lanes as u64 * u64::from(bytes / 4) <= banks,
                            "{target}, {bytes} bytes"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn wide_reads_are_served_as_measured() {
        let (_, phases) = phases(Target::Gfx950, 16, true);
        let of = |phase| (0..LANES).filter(|lane| phases[*lane] == phase).collect::<Vec<_>>();
        assert_eq!(of(0), [0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27]);
        assert_eq!(of(1), [4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31]);
    }
}
