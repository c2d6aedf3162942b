//! `engram.lookup`: the named table rows side by side, `y[t] = [table[row[t,0]] | …]`, as bf16.
//!
//! A row has E4M3 codes and one UE8M0 scale per 32 columns. Roundings: code times scale, once to
//! bf16, exact above bf16's subnormals. A NaN code or scale gives NaN in its block.
//! An index of -1 or outside gives zeros and reads nothing. Row offsets pass 4 GiB (98 GB tables).
//! Rows see only themselves. Cost: `columns x 33/32 head_dim` bytes a token, at random places.
//! Source: Engram 5.1.

use crate::ops::prelude::*;

io! {
    /// Operands of [`EngramLookup`].
    pub struct EngramLookupIo {
        /// `[tokens, columns]` i32.
        row: In,
        /// `[rows, head_dim]` codes and scales.
        table: In,
        /// `[tokens, columns head_dim]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct EngramLookup {
        /// Rows of the table.
        pub rows: u64,
        /// Rows a token looks up.
        pub columns: u64,
        /// Columns of a row, a multiple of 32.
        pub head_dim: u64,
    }
}

impl Operator for EngramLookup {
    const ID: &'static str = "engram.lookup";
    type Io<I, O> = EngramLookupIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.rows > 0 && self.columns > 0, "sizes must be positive")?;
        let blocks = self.head_dim > 0 && self.head_dim.is_multiple_of(32);
        require(Self::ID, blocks, "`head_dim` is not a multiple of 32")
    }
    fn operands(&self) -> EngramLookupIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        EngramLookupIo {
            row: Operand::index(&[t, Is(self.columns)], IndexBound::Fixed(self.rows)),
            table: Operand::new(Enc::Q8, &[Is(self.rows), Is(self.head_dim)])
                .domain(Domain::Weight(Class::Table)),
            y: Operand::new(Enc::BF16, &[t, Is(self.columns * self.head_dim)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens) * self.columns;
        let read_bytes = t * (4 + self.head_dim * 33 / 32);
        Cost { flops: 0.0, read_bytes, written_bytes: t * self.head_dim * 2 }
    }
}
