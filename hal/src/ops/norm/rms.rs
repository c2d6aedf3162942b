//! `norm.rms`: `y = w (x / sqrt(mean(x²) + eps))` over the last axis.
//!
//! Roundings: mean, `rstd = 1 / sqrt(mean + eps)`, `x rstd` and its product with the weight each to
//! fp32, then one to bf16 (engines that round to bf16 before the weight round twice). `eps` is
//! 1e-20 in the text model, so a row of zeros gives zeros, not NaN; 1e-6 in the vision tower. NaN
//! in a row makes that row NaN. A sum of squares beyond f32 is infinite, so such a row gives zeros,
//! and NaN where it holds an infinity. Rows see only themselves. Empty: nothing. Cost: bytes. Used
//! everywhere. Source: model report 3.1, P1.

use crate::ops::prelude::*;

io! {
    /// Operands of [`RmsNorm`].
    pub struct RmsNormIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[width]` bf16.
        weight: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RmsNorm {
        /// Columns.
        pub width: u64,
        /// Added to the mean square.
        pub eps: Real,
    }
}

impl Operator for RmsNorm {
    const ID: &'static str = "norm.rms";
    type Io<I, O> = RmsNormIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0, "`width` must be positive")?;
        require(Self::ID, self.eps.value() > 0.0, "`eps` must be positive")
    }
    fn operands(&self) -> RmsNormIo<Operand, Operand> {
        let row = Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]);
        let weight = Operand::new(Enc::BF16, &[Is(self.width)]);
        RmsNormIo { x: row.clone(), weight, y: row }
    }
}
