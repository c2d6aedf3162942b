//! `gemm.mxfp8`: FP8 activations by FP8 weights.
//!
//! `y[t,n] = Σ_k x[t,k] W[n,k]` over dequantised values: activations with one power of two per 1x32
//! block, weights with one per 32x32 tile (edge tiles may be ragged in `n`).
//!
//! Roundings: products are exact; the sum is fp32-class (f64 in the reference), added to f32 at least
//! every 32 products; one rounding to bf16 at the end.
//! NaN in a row of `x` gives NaN in that row only; a NaN weight gives NaN in its column of `y`.
//! Rows see only themselves. No rows: nothing is launched.
//! Cost: `2 t n k` FLOPs, weights once. Used by `wq_a`, `wq_b`, `wkv`, `wo_b`, the shared expert,
//! the indexer's `wq_b`, Engram's `wkv` and DSpark's `main_proj`. Source: model report 3.1, P6.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Mxfp8Linear`].
    pub struct Mxfp8LinearIo {
        /// `[tokens, k]` codes and scales.
        x: In,
        /// `[n, k]`, 32x32 tiles; may be in a private layout.
        weight: In,
        /// `[tokens, n]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Mxfp8Linear {
        /// Outputs.
        pub n: u64,
        /// Inputs, a multiple of 32.
        pub k: u64,
    }
}

impl Operator for Mxfp8Linear {
    const ID: &'static str = "gemm.mxfp8";
    type Io<I, O> = Mxfp8LinearIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.n > 0, "`n` must be positive")?;
        require(Self::ID, self.k > 0 && self.k.is_multiple_of(32), "`k` is not a multiple of 32")
    }
    fn operands(&self) -> Mxfp8LinearIo<Operand, Operand> {
        Mxfp8LinearIo {
            x: Operand::new(Enc::Q8, &[Of(Sym::Tokens), Is(self.k)]),
            weight: Operand::new(Enc::MXFP8_TILE, &[Is(self.n), Is(self.k)])
                .domain(Domain::Weight(Class::Dense)),
            y: Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.n)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.n, self.k))
    }
}
