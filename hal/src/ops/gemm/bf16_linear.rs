//! `gemm.bf16`: bf16 by bf16, `y[t,n] = Σ_k x[t,k] W[n,k] + b[n]`.
//!
//! Roundings: fp32-class sum (f64 in the reference), the bias added before the one rounding to
//! bf16. NaN stays in its row. Rows see only themselves.
//! Cost: `2 t n k` FLOPs. Used by the ratio-1 compressor, index keys, index weights, the vision
//! tower and the aligner (the latter two with bias). Source: model report 3.1, P8.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Bf16Linear`].
    pub struct Bf16LinearIo {
        /// `[tokens, k]` bf16.
        x: In,
        /// `[n, k]` bf16; may be in a private layout.
        weight: In,
        /// `[n]` bf16; absent without `bias`.
        bias: In,
        /// `[tokens, n]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Bf16Linear {
        /// Outputs.
        pub n: u64,
        /// Inputs.
        pub k: u64,
        /// Whether there is a bias.
        pub bias: bool,
    }
}

impl Operator for Bf16Linear {
    const ID: &'static str = "gemm.bf16";
    type Io<I, O> = Bf16LinearIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.n > 0 && self.k > 0, "`n` and `k` must be positive")
    }
    fn operands(&self) -> Bf16LinearIo<Operand, Operand> {
        Bf16LinearIo {
            x: Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.k)]),
            weight: Operand::new(Enc::BF16, &[Is(self.n), Is(self.k)])
                .domain(Domain::Weight(Class::Dense)),
            bias: Operand::new(Enc::BF16, &[Is(self.n)]).when(self.bias),
            y: Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.n)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.n, self.k))
    }
}
