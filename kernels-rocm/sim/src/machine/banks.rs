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
fn phases(target: Target, bytes: u32, is_read: bool) -> (u32, [u8; LANES]) {
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
        let words = u64::from(transfer.bytes.div_ceil(4));
        for piece in 0..transfer.pieces {
            // Words of each phase, to be counted once however many lanes want them.
            let mut wanted: [Vec<u64>; 8] = Default::default();
            for lane in (0..LANES).filter(|lane| transfer.mask >> lane & 1 != 0) {
                let first = (transfer.addresses[lane] + u64::from(transfer.offsets[piece])) / 4;
                wanted[usize::from(phases[lane])].extend(first..first + words);
            }
            for mut phase in wanted.into_iter().filter(|phase| !phase.is_empty()) {
                phase.sort_unstable();
                phase.dedup();
                let mut load = [0u64; 64];
                for word in phase {
                    load[(word % u64::from(banks)) as usize] += 1;
                }
                self.tally.lds_passes += load.into_iter().max().unwrap_or(0);
                self.tally.lds_ideal_passes += 1;
            }
        }
    }
}
