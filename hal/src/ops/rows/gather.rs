//! `rows.gather`: `y[o] = x[at[o]]`; exact.
//!
//! An index of -1 or outside gives a row of zero bytes. The independent rows are the outputs.
//! Used to take the rows whose logits are wanted, and the last rows for the upper half of a
//! prefill. Source: model report 3.2, 3.13.

use crate::ops::prelude::*;

io! {
    /// Operands of [`GatherRows`].
    pub struct GatherRowsIo {
        /// `[tokens, width]`.
        x: In,
        /// `[outputs]` i32.
        at: In,
        /// `[outputs, width]`.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct GatherRows {
        /// Encoding of an element, of whole bytes.
        pub elem: Elem,
        /// Columns.
        pub width: u64,
    }
}

impl Operator for GatherRows {
    const ID: &'static str = "rows.gather";
    const ROWS: Sym = Sym::Outputs;
    type Io<I, O> = GatherRowsIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0, "`width` must be positive")?;
        require(Self::ID, self.elem.bits() >= 8, "elements must be whole bytes")
    }
    fn operands(&self) -> GatherRowsIo<Operand, Operand> {
        let (enc, w) = (Enc::Plain(self.elem), Is(self.width));
        GatherRowsIo {
            x: Operand::new(enc, &[Of(Sym::Tokens), w]),
            at: Operand::index(&[Of(Sym::Outputs)], IndexBound::Rows(Sym::Tokens, 1)),
            y: Operand::new(enc, &[Of(Sym::Outputs), w]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let bytes = at.at(Sym::Outputs) * self.width * self.elem.bits() / 8;
        Cost { flops: 0.0, read_bytes: bytes, written_bytes: bytes }
    }
}
