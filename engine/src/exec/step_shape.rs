//! Sizes of a step.

use super::{EngineOptions, Geometry};
use std::iter::successors;

/// Sizes of a step. Steps of equal shape have their lists at the same addresses, so one captured
/// graph runs them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// Rows.
    pub tokens: u64,
    /// Rows of the page table.
    pub sequences: u64,
    /// Rows whose logits are computed.
    pub outputs: u64,
    /// Columns of the page table.
    pub table_pages: u64,
}

impl StepShape {
    /// What a step without prompt rows is padded to: one of [`StepShape::all`] that holds so many
    /// `sequences` and `rows`, more than them where any verifies drafts, and their pages. `None`
    /// when there are more sequences than [`EngineOptions::step_sizes`] go to.
    pub fn padded(
        options: &EngineOptions,
        geometry: &Geometry,
        (sequences, rows): (u64, u64),
        table_pages: u64,
    ) -> Option<Self> {
        let sequences = options.padded_sequences(sequences)?;
        let verified =
            verify_widths(options).into_iter().find(|width| sequences * width >= rows)?;
        let widths = table_widths(options, geometry).take_while(|width| *width >= table_pages);
        Some(Self::of(options, geometry, (sequences, verified), widths.last()?))
    }

    /// Every shape that steps are padded to. Tables are each an eighth of the next wider one:
    /// few shapes, and short contexts do not pay for the longest.
    pub fn all(options: &EngineOptions, geometry: &Geometry) -> Vec<Self> {
        let mut shapes = Vec::new();
        for size in &options.step_sizes {
            for verified in verify_widths(options) {
                let shape = |width| Self::of(options, geometry, (*size, verified), width);
                shapes.extend(table_widths(options, geometry).map(shape));
            }
        }
        shapes
    }

    fn of(
        options: &EngineOptions,
        geometry: &Geometry,
        (sequences, verified): (u64, u64),
        table_pages: u64,
    ) -> Self {
        let block = if verified > 1 { options.block(geometry) } else { 0 };
        let (tokens, outputs) = (sequences * verified, sequences * (1 + block));
        Self { tokens, sequences, outputs, table_pages }
    }
}

/// Rows for each sequence that steps are padded to: its token, and that with all its drafts; any
/// number between where drafts are cut. Rows of a step go where they are wanted, so sequences that
/// verify more and others that verify less share one.
fn verify_widths(options: &EngineOptions) -> Vec<u64> {
    let most = 1 + options.draft_tokens;
    match options.cuts_drafts() {
        true => (1..=most).collect(),
        false if most > 1 => vec![1, most],
        false => vec![1],
    }
}

/// The widest table first.
fn table_widths(options: &EngineOptions, geometry: &Geometry) -> impl Iterator<Item = u64> {
    successors(Some(options.table_pages(geometry)), |width| {
        (*width > 1).then(|| (*width / 8).max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::v41::Config;

    #[test]
    fn steps_that_verify_fewer_drafts_are_smaller() {
        let geometry = Geometry::of(&Config::named("v4.1-flash").unwrap());
        let plain = EngineOptions {
            draft_tokens: 5,
            step_sizes: vec![1, 4],
            ..crate::measure::StepWork::options(&[])
        };
        let cut = EngineOptions { least_survival: 0.3, ..plain.clone() };
        let tokens = |options, rows| {
            let shape = StepShape::padded(options, &geometry, rows, 1)?;
            assert!(StepShape::all(options, &geometry).contains(&shape));
            Some(shape.tokens)
        };
        let padded = [(1, 1), (1, 2), (1, 6), (3, 3), (3, 5), (3, 9), (3, 18)];
        assert_eq!(padded.map(|rows| tokens(&plain, rows)), [1, 6, 6, 4, 24, 24, 24].map(Some));
        assert_eq!(padded.map(|rows| tokens(&cut, rows)), [1, 2, 6, 4, 8, 12, 20].map(Some));
        assert_eq!(tokens(&cut, (5, 5)), None);
    }
}
