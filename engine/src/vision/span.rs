//! The positions of a picture in the prompt.

/// What a position of a span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum SpanKind {
    /// The first position; its row is the checkpoint's `image_start`.
    Start = 0,
    /// A cell of the picture; its row comes from the aligner.
    Image = 1,
    /// The end of a row of cells; its row is `image_newline`.
    Newline = 2,
    /// The last position; its row is `image_end`.
    End = 3,
}

/// The span of one picture: start, then each row of cells followed by a newline, then end.
/// Every position carries the image token's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Rows of cells, at least one.
    pub rows: u32,
    /// Cells per row, at least one.
    pub columns: u32,
}

impl Span {
    /// Length in positions: `rows * (columns + 1) + 2`.
    pub fn tokens(self) -> u64 {
        u64::from(self.rows) * (u64::from(self.columns) + 1) + 2
    }

    /// Cells, which is the number of aligner rows.
    pub fn cells(self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }

    /// What `position` of the span stands for, `None` past its end.
    pub fn kind(self, position: u64) -> Option<SpanKind> {
        let tokens = self.tokens();
        if position >= tokens {
            None
        } else if position == 0 {
            Some(SpanKind::Start)
        } else if position == tokens - 1 {
            Some(SpanKind::End)
        } else if position.is_multiple_of(u64::from(self.columns) + 1) {
            Some(SpanKind::Newline)
        } else {
            Some(SpanKind::Image)
        }
    }

    /// The aligner row of `position`, `None` where it is not a cell. Cells are in reading order,
    /// so a prompt cut inside a span finds its rows without walking it.
    pub fn cell(self, position: u64) -> Option<u64> {
        (self.kind(position)? == SpanKind::Image)
            .then(|| position - 1 - (position - 1) / (u64::from(self.columns) + 1))
    }

    /// The kinds in order.
    pub fn kinds(self) -> impl Iterator<Item = SpanKind> {
        (0..self.tokens()).map_while(move |position| self.kind(position))
    }
}
