//! The lists of a step, on the host.

use super::chunk::Chunk;
use super::row_lists::{RowLists, number};
use super::{Geometry, StepShape};
use crate::kv::PAGE_TOKENS;

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
        let longest = chunks.iter().map(|chunk| chunk.pages.table().len()).max().unwrap_or(0);
        let rows = chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
        let (window_tokens, history_tokens) =
            chunks.first().map_or((0, 0), |chunk| (chunk.window_tokens, chunk.history_tokens));
        let table_pages = longest.next_power_of_two();
        let mut lists = Self {
            rows: RowLists::with_room(rows, window_tokens, history_tokens),
            table: Vec::with_capacity(chunks.len() * table_pages),
            sequences: chunks.len() as u64,
            table_pages: table_pages as u64,
            window_tokens,
            history_tokens,
            ..Self::default()
        };
        if chunks.iter().any(Chunk::parts_at_the_middle) {
            lists.upper = Some(UpperLists::default());
        }
        for (sequence, chunk) in chunks.iter().enumerate() {
            lists.push(sequence as u64, chunk);
        }
        lists.table.resize((lists.sequences * lists.table_pages) as usize, -1);
        lists.pad_cells();
        lists
    }

    fn push(&mut self, sequence: u64, chunk: &Chunk<'_>) {
        for position in chunk.start..chunk.end {
            let row = self.rows.tokens();
            self.rows.push(chunk, sequence, position, 0);
            if let Some(upper) = self.upper.as_mut().filter(|_| position >= chunk.upper_from) {
                upper.at.push(number(row));
                upper.rows.push(chunk, sequence, position, chunk.upper_from);
            }
        }
        self.push_pictures(chunk);
        let rows = sequence * self.table_pages;
        self.table.resize(rows as usize, -1);
        self.table.extend(chunk.pages.table());
    }

    /// The parts of pictures that the chunk covers; its rows are the last ones so far.
    fn push_pictures(&mut self, chunk: &Chunk<'_>) {
        let origin = self.rows.tokens() - (chunk.end - chunk.start);
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
        let columns = self.table_pages.max(shape.table_pages);
        let mut table = Vec::with_capacity((shape.sequences * columns) as usize);
        for sequence in 0..self.sequences {
            let row = sequence * self.table_pages;
            table.extend(&self.table[row as usize..(row + self.table_pages) as usize]);
            table.resize(((sequence + 1) * columns) as usize, -1);
        }
        (self.sequences, self.table_pages) = (self.sequences.max(shape.sequences), columns);
        table.resize((self.sequences * columns) as usize, -1);
        self.table = table;
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
