//! `vision.gelu`: the exact (error function) GELU, `y = bf(x (1 + erf(x / sqrt 2)) / 2)`.
//!
//! The tanh form is another function. Roundings: one, to bf16. NaN stays in its element; -inf gives
//! -0. Rows see only themselves. Source: vision 6.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Gelu`].
    pub struct GeluIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Gelu {
        /// Columns.
        pub width: u64,
    }
}

impl Operator for Gelu {
    const ID: &'static str = "vision.gelu";
    type Io<I, O> = GeluIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0, "`width` must be positive")
    }
    fn operands(&self) -> GeluIo<Operand, Operand> {
        let row = Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]);
        GeluIo { x: row.clone(), y: row }
    }
}
