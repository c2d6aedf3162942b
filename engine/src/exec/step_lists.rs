//! The lists of a step, on the host.

use super::chunk::Chunk;
use super::row_lists::{RowLists, number};
use super::{Geometry, StepShape};
use crate::kv::{PAGE_TOKENS, SequencePages};

/// Everything a step's [`super::Batch`] is uploaded from.
#[derive(Debug, Clone, Default)]
pub struct StepLists {
    /// Rows of all chunks in the order they were added.
    pub rows: RowLists,
    /// The rows of the upper half, where they differ.
    pub upper: Option<UpperLists>,
    /// Page tables, `[sequences, table_pages]`.
    pub table: Vec<i32>,
    /// Rows of the page table.
    pub sequences: u64,
    /// Columns of the page table: a power of two, so that few shapes occur.
    pub table_pages: u64,
    /// `[rows]`, the picture row of each row, -1 for none; empty in a step without pictures.
    pub cells: Vec<i32>,
    window_tokens: u64,
    history_tokens: u64,
}

/// The rows of the upper half.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpperLists {
    /// Which rows of the step.
    pub at: Vec<i32>,
    /// Their lists.
    pub rows: RowLists,
}

impl StepLists {
    /// Of chunks of different sequences, one row of the page table each, in order.
    pub fn new(chunks: &[Chunk<'_>]) -> Self {
        let mut lists = Self::default();
        lists.fill(chunks.iter().copied());
        lists
    }

    /// As [`StepLists::new`], in the room of an earlier step.
    pub(crate) fn fill<'a>(&mut self, chunks: impl Iterator<Item = Chunk<'a>> + Clone) {
        let (mut sequences, mut longest) = (0, 0);
        let (mut rows, mut upper_rows, mut parts) = (0, 0, false);
        for chunk in chunks.clone() {
            if sequences == 0 {
                (self.window_tokens, self.history_tokens) =
                    (chunk.window_tokens, chunk.history_tokens);
            }
            sequences += 1;
            longest = longest.max(chunk.pages.table().len());
            rows += (chunk.end - chunk.start) as usize;
            upper_rows += chunk.upper_positions().count();
            parts |= chunk.parts_at_the_middle();
        }
        self.sequences = sequences;
        self.table_pages = longest.next_power_of_two() as u64;
        let (window, history) = (self.window_tokens, self.history_tokens);
        self.rows.resize(rows, window, history);
        self.upper = parts.then(|| {
            let mut upper = UpperLists { at: vec![0; upper_rows], rows: RowLists::default() };
            upper.rows.resize(upper_rows, window, history);
            upper
        });
        self.table.clear();
        self.cells.clear();
        let (mut row, mut upper_row) = (0, 0);
        for (sequence, chunk) in (0..).zip(chunks) {
            self.set(sequence, &chunk, (&mut row, &mut upper_row));
        }
        self.table.resize((self.sequences * self.table_pages) as usize, -1);
        self.pad_cells();
    }

    fn set(&mut self, sequence: u64, chunk: &Chunk<'_>, next: (&mut usize, &mut usize)) {
        let (row, upper_row) = next;
        self.push_pictures(chunk, *row as u64);
        for position in chunk.start..chunk.end {
            self.rows.sequence[*row] = number(sequence);
            self.rows.set(*row, chunk, (position, 0));
            if let Some(upper) = self.upper.as_mut().filter(|_| position >= chunk.upper_from) {
                upper.at[*upper_row] = number(*row as u64);
                upper.rows.sequence[*upper_row] = number(sequence);
                upper.rows.set(*upper_row, chunk, (position, chunk.upper_from));
                *upper_row += 1;
            }
            *row += 1;
        }
        self.table.resize((sequence * self.table_pages) as usize, -1);
        self.table.extend_from_slice(chunk.pages.table());
    }

    /// Whether the page table is wide enough for a sequence.
    pub(super) fn holds(&self, pages: &SequencePages) -> bool {
        pages.table().len() as u64 <= self.table_pages
    }

    /// Makes `row`, the only one of its sequence, what [`StepLists::fill`] makes of a chunk of one
    /// position, when it is that of the position before. The table may not be longer than
    /// [`StepLists::table_pages`].
    pub(super) fn advance(&mut self, row: usize, chunk: &Chunk<'_>) {
        self.rows.advance(row, chunk);
        if chunk.start.is_multiple_of(PAGE_TOKENS) {
            // A page more, and the one before it may be another's that is equal.
            let table = chunk.pages.table();
            self.table[row * self.table_pages as usize..][..table.len()].copy_from_slice(table);
        }
    }

    /// The parts of pictures that the chunk covers, whose first row is `origin`.
    fn push_pictures(&mut self, chunk: &Chunk<'_>, origin: u64) {
        for span in chunk.pictures {
            let positions = span.positions();
            let covered = positions.start.max(chunk.start)..positions.end.min(chunk.end);
            if covered.is_empty() {
                continue;
            }
            let first = span.first_row.expect("a chunk ends before a picture that is not read");
            self.cells.resize((origin + covered.start - chunk.start) as usize, -1);
            self.cells.extend(covered.map(|at| number(first + at - positions.start)));
        }
    }

    /// Rows after the last picture have no picture row.
    fn pad_cells(&mut self) {
        if !self.cells.is_empty() {
            self.cells.resize(self.rows.id.len(), -1);
        }
    }

    /// Names the rows whose logits are wanted, -1 for an output of no row.
    ///
    /// # Panics
    /// When such a row does not run through the upper half.
    pub fn want(&mut self, output_at: Vec<i32>) {
        if let Some(upper) = &mut self.upper {
            let place = |row: &i32| match upper.at.binary_search(row) {
                Ok(at) => number(at as u64),
                Err(_) if *row < 0 => -1,
                Err(_) => panic!("row {row} has no logits: its upper half is skipped"),
            };
            upper.rows.output_at = output_at.iter().map(place).collect();
        }
        self.rows.output_at = output_at;
    }

    /// Nothing but padding.
    pub fn padding(shape: StepShape, geometry: &Geometry) -> Self {
        let (window_tokens, history_tokens) = (geometry.window_tokens, geometry.history_tokens);
        let mut lists = Self { window_tokens, history_tokens, ..Self::default() };
        lists.pad(shape);
        lists
    }

    /// Adds padding up to the sizes of a captured step; what is larger already stays. The
    /// upper half keeps its own size, since such steps are not captured.
    pub fn pad(&mut self, shape: StepShape) {
        self.rows.pad(shape.tokens, shape.outputs, self.window_tokens, self.history_tokens);
        self.pad_cells();
        if let Some(upper) = &mut self.upper {
            upper.rows.pad_outputs(shape.outputs);
        }
        self.widen_table(shape.table_pages);
        self.sequences = self.sequences.max(shape.sequences);
        self.table.resize((self.sequences * self.table_pages) as usize, -1);
    }

    /// Adds columns to the page table, up to `columns`.
    fn widen_table(&mut self, columns: u64) {
        let columns = self.table_pages.max(columns);
        if columns > self.table_pages {
            let mut table = Vec::with_capacity((self.sequences * columns) as usize);
            for sequence in 0..self.sequences {
                let row = sequence * self.table_pages;
                table.extend(&self.table[row as usize..(row + self.table_pages) as usize]);
                table.resize(((sequence + 1) * columns) as usize, -1);
            }
            (self.table, self.table_pages) = (table, columns);
        }
    }

    /// Its sizes; `None` for a step that has more parts than sizes say.
    pub fn shape(&self) -> Option<StepShape> {
        (self.upper.is_none() && self.cells.is_empty()).then(|| StepShape {
            tokens: self.rows.tokens(),
            sequences: self.sequences,
            outputs: self.rows.output_at.len() as u64,
            table_pages: self.table_pages,
        })
    }

    /// Compressed entries of `ratio` tokens that the page table can name for one sequence.
    pub fn entries(&self, ratio: u64) -> u64 {
        self.table_pages * PAGE_TOKENS / ratio
    }

    /// Rows whose upper half runs.
    pub fn upper_tokens(&self) -> u64 {
        self.upper.as_ref().map_or(self.rows.tokens(), |upper| upper.rows.tokens())
    }
}
