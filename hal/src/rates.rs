//! What boards can do, and the least time that leaves for a launch.

use crate::{Cost, Enc, Facts};

/// Sustained rates of a board: the one table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The board, as [`crate::DeviceInfo::board`] names it.
    pub board: &'static str,
    /// Bytes a second that a copy moves.
    pub bytes: f64,
    /// Dense FP8 operations a second.
    pub fp8: f64,
    /// Dense bf16 operations a second.
    pub bf16: f64,
}

/// Memory as measured by a copy, FP8 as published, bf16 as measured on random data.
const RATES: &[Rates] =
    &[Rates { board: "NVIDIA H200", bytes: 4.3e12, fp8: 1979e12, bf16: 790e12 }];

/// What a launch cannot be faster than.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Microseconds.
    pub us: f64,
    /// What takes them: `bytes`, `fp8` or `bf16`.
    pub bound: &'static str,
}

impl Rates {
    /// The rates of a board, if it is in the table.
    pub fn of(board: &str) -> Option<&'static Rates> {
        RATES.iter().find(|rates| rates.board == board)
    }

    /// The larger of the time for the bytes and that for the operations.
    pub fn floor(&self, facts: &Facts, cost: &Cost) -> Floor {
        let (bound, rate) = if is_narrow(facts) { ("fp8", self.fp8) } else { ("bf16", self.bf16) };
        let bytes = (cost.read_bytes + cost.written_bytes) as f64 / self.bytes * 1e6;
        let flops = cost.flops / rate * 1e6;
        if bytes >= flops {
            Floor { us: bytes, bound: "bytes" }
        } else {
            Floor { us: flops, bound }
        }
    }
}

/// Whether an operator multiplies at the FP8 rate: its first operand has FP8 or FP4 codes. All
/// others do at that of bf16.
pub(crate) fn is_narrow(facts: &Facts) -> bool {
    let first = facts.operands.first().map(|(_, _, operand)| operand.enc);
    matches!(first, Some(Enc::Scaled { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extents, Mxfp8Linear, Operator, Sym};

    #[test]
    fn floors_are_those_of_the_published_table() {
        let rates = Rates::of("NVIDIA H200").unwrap();
        let floor = |n, k, tokens| {
            let (d, at) = (Mxfp8Linear { n, k }, Extents::of(&[(Sym::Tokens, tokens)]));
            rates.floor(&Facts::of(&d), &d.cost(&at))
        };
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 5e-3, "{a} is not {b}");
        near(floor(5120, 8192, 1).us, 9.77);
        near(floor(5120, 8192, 8192).us, 347.0);
        assert_eq!(floor(5120, 8192, 1).bound, "bytes");
        assert_eq!(floor(5120, 8192, 8192).bound, "fp8");
        assert_eq!(Rates::of("another"), None);
    }
}
