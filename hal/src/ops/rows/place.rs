//! `rows.place`: rows from elsewhere put into a batch, `x[t] <- rows[at[t]]`; exact.
//!
//! An index of -1 or outside leaves the row as it is. Rows see only themselves. Puts picture cells
//! and their markers over the embeddings. Source: vision 7.

use crate::ops::prelude::*;

io! {
    /// Operands of [`PlaceRows`].
    pub struct PlaceRowsIo {
        /// `[cells, width]` bf16.
        rows: In,
        /// `[tokens]` i32.
        at: In,
        /// `[tokens, width]` bf16.
        x: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct PlaceRows {
        /// Columns.
        pub width: u64,
    }
}

impl Operator for PlaceRows {
    const ID: &'static str = "rows.place";
    type Io<I, O> = PlaceRowsIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0, "`width` must be positive")
    }
    fn operands(&self) -> PlaceRowsIo<Operand, Operand> {
        let w = Is(self.width);
        PlaceRowsIo {
            rows: Operand::new(Enc::BF16, &[Of(Sym::Cells), w]),
            at: Operand::index(&[Of(Sym::Tokens)], IndexBound::Rows(Sym::Cells, 1)),
            x: Operand::new(Enc::BF16, &[Of(Sym::Tokens), w]),
        }
    }
}
