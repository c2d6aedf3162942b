//! How much work a device is asked to do.

use tandem_hal::{Cost, Extents, Facts};

/// Limits of one bench case. GPUs take every production shape; a CPU does not.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Floating-point operations of a launch.
    pub flops: f64,
    /// Bytes of all operands.
    pub bytes: u64,
    /// Bytes that a graph touches before it comes back to the same ones: several caches full.
    pub touch_bytes: u64,
    /// Launches of a graph, unless they take too long.
    pub launches: u64,
    /// Replays of the graph that are timed, unless they take too long.
    pub replays: u64,
    /// Milliseconds of all timed replays of a case beyond which there are fewer of them.
    pub case_ms: f64,
    /// Operations and bytes that the scalar comparison of a case may take.
    pub check_flops: f64,
}

impl Budget {
    /// The budget of provider `name`.
    pub fn of(name: &str) -> Budget {
        let gpu = Budget {
            flops: f64::INFINITY,
            bytes: 64 << 30,
            touch_bytes: 300_000_000,
            launches: 20,
            replays: 15,
            case_ms: 2000.0,
            check_flops: 5e8,
        };
        if name != "reference" {
            return gpu;
        }
        let (flops, bytes) = (2e8, 16 << 20);
        Budget {
            flops,
            bytes,
            touch_bytes: 0,
            launches: 2,
            replays: 3,
            case_ms: 100.0,
            check_flops: 4e7,
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
