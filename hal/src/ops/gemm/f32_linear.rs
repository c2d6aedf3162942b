//! `gemm.f32`: true fp32 linear, `y[t,n] = Σ_k x[t,k] W[n,k]`, no TF32.
//!
//! Inputs may be stored as bf16 (promoted exactly) or f32. Roundings: fp32 sum (f64 in the
//! reference), one rounding to f32. A bf16 split of an f32 input needs at least three terms to
//! count as this operator. NaN stays in its row. Rows see only themselves.
//! Cost: `2 t n k` FLOPs. Used by the router gate, the ratio-2 compressor, the head and DSpark's
//! Markov head. Source: model report 3.1, P9 and 2.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`F32Linear`].
    pub struct F32LinearIo {
        /// `[tokens, k]`.
        x: In,
        /// `[n, k]`; may be in a private layout.
        weight: In,
        /// `[tokens, n]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct F32Linear {
        /// Outputs.
        pub n: u64,
        /// Inputs.
        pub k: u64,
        /// How `x` is stored: bf16 or f32.
        pub x: Elem,
        /// How the weight is stored: bf16 or f32.
        pub weight: Elem,
    }
}

impl Operator for F32Linear {
    const ID: &'static str = "gemm.f32";
    type Io<I, O> = F32LinearIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.n > 0 && self.k > 0, "`n` and `k` must be positive")?;
        let real = |e| matches!(e, Elem::F32 | Elem::Bf16);
        require(Self::ID, real(self.x) && real(self.weight), "inputs are stored as bf16 or f32")
    }
    fn operands(&self) -> F32LinearIo<Operand, Operand> {
        F32LinearIo {
            x: Operand::new(Enc::Plain(self.x), &[Of(Sym::Tokens), Is(self.k)]),
            weight: Operand::new(Enc::Plain(self.weight), &[Is(self.n), Is(self.k)])
                .domain(Domain::Weight(Class::Dense)),
            y: Operand::new(Enc::F32, &[Of(Sym::Tokens), Is(self.n)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.n, self.k))
    }
}
