//! `vision.add`: a residual addition, `x <- bf(x + y)`, in place.
//!
//! Roundings: one, to bf16. NaN stays in its element. Rows see only themselves. Source: vision 5.3.

use crate::ops::prelude::*;

io! {
    /// Operands of [`AddRows`].
    pub struct AddRowsIo {
        /// `[tokens, width]` bf16.
        y: In,
        /// `[tokens, width]` bf16, in place.
        x: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct AddRows {
        /// Columns.
        pub width: u64,
    }
}

impl Operator for AddRows {
    const ID: &'static str = "vision.add";
    type Io<I, O> = AddRowsIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0, "`width` must be positive")
    }
    fn operands(&self) -> AddRowsIo<Operand, Operand> {
        let row = Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]);
        AddRowsIo { y: row.clone(), x: row }
    }
}
