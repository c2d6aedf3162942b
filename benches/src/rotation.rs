//! How a graph keeps what it reads out of the caches.

use crate::Budget;
use tandem_hal::{Cost, Dir, Domain, Extents, Facts, Operand};

/// Graphs of more launches are not worth their making.
const MOST_LAUNCHES: u64 = 1024;
/// Copies of inputs that another kernel has just written, of operators that read nothing else.
const MOST_INPUTS: u64 = 32;

/// Copies that the launches of a graph take in turn.
///
/// Weights and caches come from memory: there are enough copies of them to fill the caches several
/// times over. Lists of indices differ from launch to launch, so that launches which gather a few
/// entries of a large cache, or reach a few of many experts, gather others each time. Activations
/// stay where the last kernel left them, in the cache, and have one copy; an operator of
/// activations alone takes turns among a few, so that what is too large for a cache is not in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// Copies of weights and caches.
    pub stored: u64,
    /// Variants of index lists.
    pub lists: u64,
    /// Copies of all other inputs.
    pub inputs: u64,
    /// Launches of a graph.
    pub launches: u64,
}

fn is_stored(operand: &Operand) -> bool {
    matches!(operand.domain, Domain::Weight(_) | Domain::Cache)
}

impl Rotation {
    /// One copy of everything.
    pub const NONE: Rotation = Rotation { stored: 1, lists: 1, inputs: 1, launches: 1 };

    /// For launches of `cost` at `at`.
    pub fn of(facts: &Facts, cost: &Cost, at: &Extents, budget: &Budget) -> Rotation {
        let read = facts.operands.iter().filter(|(_, dir, o)| *dir != Dir::Out && !o.absent);
        let read: Vec<_> = read.map(|(_, _, operand)| operand).collect();
        let bytes = |stored: bool| -> u64 {
            read.iter().filter(|o| is_stored(o) == stored).map(|o| o.bytes(at)).sum()
        };
        let turns = |bytes: u64| budget.touch_bytes.div_ceil(bytes.max(1)).max(1);
        let (stored, others) = (bytes(true), bytes(false));
        if stored == 0 {
            let inputs = turns(others).min(MOST_INPUTS);
            let launches = inputs.max(budget.launches);
            return Rotation { stored: 1, lists: inputs, inputs, launches };
        }
        let touched = turns(cost.read_bytes.min(stored)).min(MOST_LAUNCHES);
        let copies = turns(stored).min(MOST_LAUNCHES);
        let launches = budget.launches.max(copies).max(touched);
        Rotation { stored: copies, lists: touched.min(launches), inputs: 1, launches }
    }

    /// Copies of an operand.
    pub fn copies(&self, dir: Dir, operand: &Operand) -> u64 {
        match operand.domain {
            _ if operand.absent || dir == Dir::Out => 1,
            Domain::Weight(_) | Domain::Cache => self.stored,
            Domain::Index { .. } => self.lists,
            _ => self.inputs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Mxfp8Linear, Operator, RmsNorm, Sym};

    fn rotation<D: Operator>(d: &D, tokens: u64) -> Rotation {
        let at = Extents::of(&[(Sym::Tokens, tokens)]);
        Rotation::of(&Facts::of(d), &d.cost(&at), &at, &Budget::of("cuda"))
    }

    #[test]
    fn weights_are_copied_until_no_cache_holds_them() {
        let large = rotation(&Mxfp8Linear { n: 25600, k: 6144 }, 1);
        assert_eq!((large.stored, large.inputs, large.launches), (2, 1, 20));
        let small = rotation(&Mxfp8Linear { n: 576, k: 5120 }, 1);
        assert!(small.stored * 576 * 5120 >= 300_000_000 && small.launches == small.stored);
    }

    #[test]
    fn activations_alone_take_turns_among_a_few() {
        let few = rotation(&RmsNorm { width: 5120, eps: tandem_hal::Real::new(1e-6) }, 1);
        assert_eq!((few.inputs, few.launches), (MOST_INPUTS, MOST_INPUTS));
    }
}
