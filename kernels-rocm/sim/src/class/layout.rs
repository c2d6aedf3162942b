//! Which element lies where: operands, results and scales of matrix products, and reads that transpose.

use crate::machine::LANES;

/// Which elements of a row lie in which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each group of lanes has consecutive elements.
    Runs,
    /// Each group of lanes has two runs of 16, half the depth apart.
    SplitRuns,
}

/// Rules that are wrong, one of which the crate's tests may put in force to see that something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    OperandGroupsInterleaved,
    OperandGroupsReversed,
    WideOperandsUnsplit,
    NarrowOperandsSplit,
    SplitRunsShort,
    ResultTransposed,
    ResultRowsConsecutive,
    ResultGroupsSwapped,
    ScaleRowsFirst,
    ScaleOfFirstBlock,
    ScaleBytesReversed,
    ScaleBytesOfOtherSide,
    ColumnsUntransposed,
    ColumnsReversed,
    ColumnsOfHalfTheLanes,
    ShortColumnsPaired,
}

#[cfg(not(test))]
fn has(_: Mutation) -> bool {
    false
}

#[cfg(test)]
use planted::has;

/// The layout of an operand's elements, of so many bits each; `mixed` in the forms whose operands have a format each.
pub(crate) fn layout(mixed: bool, bits: usize) -> Layout {
    let is_split = mixed
        && match bits {
            8 => !has(Mutation::WideOperandsUnsplit),
            _ => has(Mutation::NarrowOperandsSplit),
        };
    if is_split { Layout::SplitRuns } else { Layout::Runs }
}

/// Lane and first bit of element `k` of row `row`, where `groups` groups of `side` lanes share a row.
pub(crate) fn place(
    layout: Layout,
    side: usize,
    depth: usize,
    bits: usize,
    row: usize,
    k: usize,
) -> (usize, usize) {
    let groups = LANES / side;
    let each = depth / groups;
    match layout {
        Layout::Runs if has(Mutation::OperandGroupsInterleaved) => {
            (row + side * (k % groups), k / groups * bits)
        }
        Layout::Runs if has(Mutation::OperandGroupsReversed) => {
            (row + side * (groups - 1 - k / each), k % each * bits)
        }
        Layout::Runs => (row + side * (k / each), k % each * bits),
        Layout::SplitRuns => {
            let length = if has(Mutation::SplitRunsShort) { 8 } else { 16 };
            let run = k / length;
            (row + side * (run % groups), (run / groups * length + k % length) * bits)
        }
    }
}

/// Register and lane of an element of C and of the result.
pub(crate) fn result_place(side: usize, row: usize, column: usize) -> (usize, usize) {
    let groups = LANES / side;
    let (row, column) = if has(Mutation::ResultTransposed) { (column, row) } else { (row, column) };
    if has(Mutation::ResultRowsConsecutive) {
        let each = side / groups;
        return (row % each, row / each * side + column);
    }
    let swap = if has(Mutation::ResultGroupsSwapped) { groups - 1 } else { 0 };
    (4 * (row / (4 * groups)) + row % 4, ((row / 4 % groups) ^ swap) * side + column)
}

/// The lane that has the scale of a row's block of 32 elements.
pub(crate) fn scale_lane(side: usize, row: usize, block: usize) -> usize {
    if has(Mutation::ScaleRowsFirst) {
        return row * (LANES / side) + block;
    }
    if has(Mutation::ScaleOfFirstBlock) { row } else { row + side * block }
}

/// The byte of the scale register that each side takes, by the bits of two modifiers.
pub(crate) fn scale_bytes(low: u8, high: u8) -> [u32; 2] {
    let bytes = [0, 1].map(|side| u32::from(low >> side & 1) + 2 * u32::from(high >> side & 1));
    if has(Mutation::ScaleBytesReversed) {
        return bytes.map(|byte| 3 - byte);
    }
    if has(Mutation::ScaleBytesOfOtherSide) { [bytes[1], bytes[0]] } else { bytes }
}

/// Where a transposing read takes element `row` of a lane's column from: a lane, and the element there, of `count`
/// each. In each group of 16 lanes the lanes' data, one behind the other, are a matrix of 16 columns; lane j of the
/// group gets column j.
pub(crate) fn column_source(lane: usize, row: usize, count: usize) -> (usize, usize) {
    if has(Mutation::ColumnsUntransposed) {
        return (lane, row);
    }
    let width = if has(Mutation::ColumnsOfHalfTheLanes) { 8 } else { 16 };
    let mut column = lane % width;
    if has(Mutation::ColumnsReversed) {
        column = width - 1 - column;
    }
    if has(Mutation::ShortColumnsPaired) && count == 4 {
        column ^= 1;
    }
    let element = row * width + column;
    (lane / width * width + element / count % width, element % count)
}

#[cfg(test)]
mod planted {
    use super::Mutation;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    pub(super) fn has(mutation: Mutation) -> bool {
        PLANTED.get() == Some(mutation)
    }

    /// Puts a wrong rule in force on this thread while `check` runs.
    pub(crate) fn with<R>(mutation: Option<Mutation>, check: impl FnOnce() -> R) -> R {
        PLANTED.set(mutation);
        let result = check();
        PLANTED.set(None);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrices;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const MUTATIONS: [Mutation; 16] = [
        Mutation::OperandGroupsInterleaved,
        Mutation::OperandGroupsReversed,
        Mutation::WideOperandsUnsplit,
        Mutation::NarrowOperandsSplit,
        Mutation::SplitRunsShort,
        Mutation::ResultTransposed,
        Mutation::ResultRowsConsecutive,
        Mutation::ResultGroupsSwapped,
        Mutation::ScaleRowsFirst,
        Mutation::ScaleOfFirstBlock,
        Mutation::ScaleBytesReversed,
        Mutation::ScaleBytesOfOtherSide,
        Mutation::ColumnsUntransposed,
        Mutation::ColumnsReversed,
        Mutation::ColumnsOfHalfTheLanes,
        Mutation::ShortColumnsPaired,
    ];

    /// Checks by name, those of one launch first.
    const CHECKS: [(&str, fn()); 6] = [
        ("transposing reads", matrices::transposing_reads_give_columns),
        ("FP8", matrices::fp8_products_in_each_dialect),
        ("FP4", matrices::scaled_fp4_products),
        ("bytes of scales", matrices::scales_are_bytes_of_a_word),
        ("mixed", matrices::scaled_products_of_mixed_formats_lie_in_mixed_orders),
        ("bf16", matrices::bf16_products_on_both_targets),
    ];

    /// The names of checks that fail while a wrong rule is in force.
    fn failures(mutation: Option<Mutation>) -> Vec<&'static str> {
        let fails = |check: fn()| {
            planted::with(mutation, || catch_unwind(AssertUnwindSafe(check)).is_err())
        };
        CHECKS.iter().filter(|(_, check)| fails(*check)).map(|(name, _)| *name).collect()
    }

    #[test]
    fn every_wrong_rule_makes_a_check_fail() {
        if crate::support::object("matrices", "gfx950").is_none() {
            return;
        }
        assert_eq!(failures(None), [""; 0], "without a wrong rule");
        for mutation in MUTATIONS {
            let failures = failures(Some(mutation));
            println!("{mutation:?}: {failures:?}");
            assert!(!failures.is_empty(), "{mutation:?} goes unnoticed");
        }
    }

    #[test]
    fn results_lie_where_the_published_formulas_say() {
        for register in 0..16 {
            for lane in 0..LANES {
                let (row, column) =
                    (8 * (register / 4) + 4 * (lane / 32) + register % 4, lane % 32);
                assert_eq!(result_place(32, row, column), (register, lane));
                if register < 4 {
                    let (row, column) = (4 * (lane / 16) + register, lane % 16);
                    assert_eq!(result_place(16, row, column), (register, lane));
                }
            }
        }
    }

    #[test]
    fn operands_lie_where_the_published_formulas_say() {
        // 16-bit elements: four a lane, then the next group of lanes.
        assert_eq!(place(Layout::Runs, 32, 8, 16, 5, 3), (5, 48));
        assert_eq!(place(Layout::Runs, 32, 8, 16, 5, 4), (37, 0));
        // FP4 of the scaled forms: 32 a lane.
        assert_eq!(place(Layout::Runs, 16, 128, 4, 3, 33), (19, 4));
        // FP8 of the scaled forms: two runs of 16 a lane, half the depth apart.
        assert_eq!(place(Layout::SplitRuns, 32, 64, 8, 1, 17), (33, 8));
        assert_eq!(place(Layout::SplitRuns, 32, 64, 8, 1, 33), (1, 136));
        assert_eq!(place(Layout::SplitRuns, 16, 128, 8, 1, 70), (1, 176));
    }

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for (layout, side, depth, bits) in
            [(Layout::Runs, 16, 32, 16), (Layout::SplitRuns, 32, 64, 8)]
        {
            let all = (0..side)
                .flat_map(|row| (0..depth).map(move |k| place(layout, side, depth, bits, row, k)));
            let mut places: Vec<_> = all.collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), side * depth);
            assert!(
                places
                    .iter()
                    .all(|(lane, bit)| *lane < LANES && *bit < side * depth / LANES * bits)
            );
        }
    }
}
