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
    /// `sequences`, which verify drafts or do not, and their pages. `None` when there are more
    /// sequences than [`EngineOptions::step_sizes`] go to.
    pub fn padded(
        options: &EngineOptions,
        geometry: &Geometry,
        (sequences, verifies): (u64, bool),
        table_pages: u64,
    ) -> Option<Self> {
        let sequences = options.padded_sequences(sequences)?;
        let widths = table_widths(options, geometry).take_while(|width| *width >= table_pages);
        Some(Self::of(options, geometry, (sequences, verifies), widths.last()?))
    }

    /// Every shape that steps are padded to. Tables are each an eighth of the next wider one:
    /// few shapes, and short contexts do not pay for the longest.
    pub fn all(options: &EngineOptions, geometry: &Geometry) -> Vec<Self> {
        let verifies: &[bool] = if options.draft_tokens > 0 { &[false, true] } else { &[false] };
        let mut shapes = Vec::new();
        for size in &options.step_sizes {
            for verifies in verifies {
                let shape = |width| Self::of(options, geometry, (*size, *verifies), width);
                shapes.extend(table_widths(options, geometry).map(shape));
            }
        }
        shapes
    }

    fn of(
        options: &EngineOptions,
        geometry: &Geometry,
        (sequences, verifies): (u64, bool),
        table_pages: u64,
    ) -> Self {
        let (drafts, block) =
            if verifies { (options.draft_tokens, options.block(geometry)) } else { (0, 0) };
        let (tokens, outputs) = (sequences * (1 + drafts), sequences * (1 + block));
        Self { tokens, sequences, outputs, table_pages }
    }
}

/// The widest table first.
fn table_widths(options: &EngineOptions, geometry: &Geometry) -> impl Iterator<Item = u64> {
    successors(Some(options.table_pages(geometry)), |width| {
        (*width > 1).then(|| (*width / 8).max(1))
    })
}
