//! `vision.gated_silu`: `y = bf(bf(silu(gate)) up)`, gate and up the halves of a row.
//!
//! Roundings: silu to bf16, then the product to bf16 (two, unlike [`crate::Swiglu`]). No clamp. NaN
//! stays in its element. Rows see only themselves. Source: vision 5.3.

use crate::ops::prelude::*;

io! {
    /// Operands of [`GatedSilu`].
    pub struct GatedSiluIo {
        /// `[tokens, 2 inter]` bf16.
        x: In,
        /// `[tokens, inter]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct GatedSilu {
        /// Width of the result.
        pub inter: u64,
    }
}

impl Operator for GatedSilu {
    const ID: &'static str = "vision.gated_silu";
    type Io<I, O> = GatedSiluIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.inter > 0, "`inter` must be positive")
    }
    fn operands(&self) -> GatedSiluIo<Operand, Operand> {
        let row = |cols| Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(cols)]);
        GatedSiluIo { x: row(2 * self.inter), y: row(self.inter) }
    }
}
