//! The table at the end of a run: operator by row.

use std::collections::BTreeMap;

/// What happened to the cases of one row.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Cases that held.
    pub held: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that the row does not take.
    pub refused: u64,
}

/// Counts by lane, operator and row.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    rows: BTreeMap<(String, String, String), Counts>,
}

impl Summary {
    /// Add to a row's counts.
    pub fn add(&mut self, lane: &str, op: &str, row: &str, counts: Counts) {
        let entry = self.rows.entry((lane.into(), op.into(), row.into())).or_default();
        entry.held += counts.held;
        entry.failed += counts.failed;
        entry.refused += counts.refused;
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{:<14} {:<24} {:<12} {:>6} {:>6} {:>8}",
            "lane", "operator", "row", "held", "failed", "refused"
        )?;
        for ((lane, op, row), Counts { held, failed, refused }) in &self.rows {
            writeln!(f, "{lane:<14} {op:<24} {row:<12} {held:>6} {failed:>6} {refused:>8}")?;
        }
        let total = self.rows.values().fold(Counts::default(), |a, b| Counts {
            held: a.held + b.held,
            failed: a.failed + b.failed,
            refused: a.refused + b.refused,
        });
        write!(
            f,
            "{} rows, {} cases held, {} failed, {} refused",
            self.rows.len(),
            total.held,
            total.failed,
            total.refused
        )
    }
}
