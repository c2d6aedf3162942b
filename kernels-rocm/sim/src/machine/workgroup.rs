//! A workgroup that runs: its waves and its LDS.

use super::lds::Lds;
use super::wave::{State, Wave};

/// A workgroup.
pub(crate) struct Workgroup {
    /// Its place in the grid.
    pub(crate) at: [u32; 3],
    /// The same as a number, in the order in which they begin.
    pub(crate) number: u64,
    /// The launch it belongs to.
    pub(crate) launch: usize,
    pub(crate) waves: Vec<Wave>,
    pub(crate) lds: Lds,
}

impl Workgroup {
    /// Whether all its waves have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.waves.iter().all(|wave| wave.state == State::Ended)
    }

    /// Lets waves pass a barrier that all of them that have not ended have reached.
    pub(crate) fn pass_barrier(&mut self) {
        let is_running = |wave: &Wave| wave.state == State::Running;
        if self.waves.iter().any(is_running) {
            return;
        }
        for wave in self.waves.iter_mut().filter(|wave| wave.state == State::AtBarrier) {
            wave.state = State::Running;
            wave.interval += 1;
        }
    }
}
