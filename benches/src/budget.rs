//! How much work a device is asked to do per launch.

use tandem_hal::{Cost, Extents, Facts};

/// Limits of one bench case. GPUs take every production shape; a CPU does not.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Floating-point operations of a launch.
    pub flops: f64,
    /// Bytes of all operands.
    pub bytes: u64,
}

impl Budget {
    /// The budget of provider `name`.
    pub fn of(name: &str) -> Budget {
        if name == "reference" {
            Budget { flops: 2e8, bytes: 16 << 20 }
        } else {
            Budget { flops: f64::INFINITY, bytes: 64 << 30 }
        }
    }

    /// Why a case is left out; `None` when it fits.
    pub fn refusal(&self, cost: &Cost, facts: &Facts, at: &Extents) -> Option<String> {
        let operands = facts.operands.iter().map(|(_, _, operand)| operand.bytes(at));
        let bytes = operands.fold(0u64, u64::saturating_add);
        if cost.flops > self.flops {
            return Some(format!("{:.1} GFLOP a launch are too many here", cost.flops / 1e9));
        }
        (bytes > self.bytes).then(|| format!("{} MiB of operands are too many here", bytes >> 20))
    }
}
