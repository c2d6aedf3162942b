//! `rows.embed`: token embedding, `y[t] = table[id[t]]`; exact.
//!
//! An id of -1, or outside the vocabulary, gives a row of zeros. Rows see only themselves.
//! Cost: bytes. Source: model report 3.2.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Embed`].
    pub struct EmbedIo {
        /// `[tokens]` i32.
        id: In,
        /// `[vocab, width]` bf16.
        table: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Embed {
        /// Rows of the table.
        pub vocab: u64,
        /// Columns.
        pub width: u64,
    }
}

impl Operator for Embed {
    const ID: &'static str = "rows.embed";
    type Io<I, O> = EmbedIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0 && self.width > 0, "sizes must be positive")
    }
    fn operands(&self) -> EmbedIo<Operand, Operand> {
        let (t, w) = (Of(Sym::Tokens), Is(self.width));
        EmbedIo {
            id: Operand::index(&[t], IndexBound::Fixed(self.vocab)),
            table: Operand::new(Enc::BF16, &[Is(self.vocab), w])
                .domain(Domain::Weight(Class::Table)),
            y: Operand::new(Enc::BF16, &[t, w]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let bytes = at.at(Sym::Tokens) * self.width * 2;
        Cost { flops: 0.0, read_bytes: bytes, written_bytes: bytes }
    }
}
