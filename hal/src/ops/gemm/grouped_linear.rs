//! `gemm.grouped`: block-diagonal linear, `y[t,g,n] = Σ_k x[t,g,k] W[g n_per + n, k]`.
//!
//! The weight is stored FP8 with 32x32 tiles but means bf16 (the product of code and scale is exact
//! there); `x` is bf16 and is **not** quantised. Engines that quantise it add a rounding the model
//! does not have.
//! Roundings: fp32-class sum (f64 in the reference), one rounding to bf16. NaN stays in its row and
//! group. Rows see only themselves.
//! Cost: `2 t groups n k` FLOPs. Used by the first output projection `wo_a`. Source: model report
//! 3.10.

use crate::ops::prelude::*;

io! {
    /// Operands of [`GroupedLinear`].
    pub struct GroupedLinearIo {
        /// `[tokens, groups, k]` bf16.
        x: In,
        /// `[groups * n, k]`, 32x32 tiles; may be in a private layout.
        weight: In,
        /// `[tokens, groups, n]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct GroupedLinear {
        /// Independent blocks.
        pub groups: u64,
        /// Outputs of a group, a multiple of 32.
        pub n: u64,
        /// Inputs of a group, a multiple of 32.
        pub k: u64,
    }
}

impl Operator for GroupedLinear {
    const ID: &'static str = "gemm.grouped";
    type Io<I, O> = GroupedLinearIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.groups > 0, "`groups` must be positive")?;
        require(Self::ID, self.n > 0 && self.n.is_multiple_of(32), "`n` is not a multiple of 32")?;
        require(Self::ID, self.k > 0 && self.k.is_multiple_of(32), "`k` is not a multiple of 32")
    }
    fn operands(&self) -> GroupedLinearIo<Operand, Operand> {
        let row = |cols| Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.groups), Is(cols)]);
        GroupedLinearIo {
            x: row(self.k),
            weight: Operand::new(Enc::MXFP8_TILE, &[Is(self.groups * self.n), Is(self.k)])
                .domain(Domain::Weight(Class::Dense)),
            y: row(self.n),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.groups * self.n, self.k))
    }
}
