//! The table at the end of a run: operator by row.

use super::kind::Kind;
use std::collections::BTreeMap;
use tandem_hal::Rank;

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

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.held += other.held;
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

/// A row on a lane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tested {
    /// The lane's name.
    pub lane: String,
    /// The operator.
    pub op: &'static str,
    /// The row.
    pub row: &'static str,
    /// Its rank.
    pub rank: Rank,
    /// Its bits.
    pub bits: &'static str,
}

/// Counts by lane, operator and row, and by kind of trial.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    rows: BTreeMap<Tested, BTreeMap<Kind, Counts>>,
}

impl Summary {
    /// Add to a row's counts.
    pub fn add(&mut self, tested: Tested, kind: Kind, counts: Counts) {
        *self.rows.entry(tested).or_default().entry(kind).or_default() += counts;
    }

    /// Every row with its counts; kinds that did not run are not there.
    pub fn rows(&self) -> impl Iterator<Item = (&Tested, &BTreeMap<Kind, Counts>)> {
        self.rows.iter()
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{:<14} {:<24} {:<12} {:>6} {:>6} {:>8}",
            "lane", "operator", "row", "held", "failed", "refused"
        )?;
        let mut total = Counts::default();
        for (Tested { lane, op, row, .. }, kinds) in &self.rows {
            let mut counts = Counts::default();
            kinds.values().for_each(|kind| counts += *kind);
            let Counts { held, failed, refused } = counts;
            writeln!(f, "{lane:<14} {op:<24} {row:<12} {held:>6} {failed:>6} {refused:>8}")?;
            total += counts;
        }
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
