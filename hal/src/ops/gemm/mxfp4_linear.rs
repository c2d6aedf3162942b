//! `gemm.mxfp4`: FP8 activations by FP4 weights.
//!
//! As [`gemm.mxfp8`](crate::Mxfp8Linear), with E2M1 weights and one power of two per weight row and
//! 32 columns. Activations are FP8, never FP4. The weight widens exactly to E4M3 or bf16.
//!
//! Roundings, NaN, rows: as there. Cost: `2 t n k` FLOPs, 4.25 bits a weight. The dense form of the
//! experts' linear; the model itself uses [`crate::GateUp`] and [`crate::Down`].
//! Source: model report 3.1, P7.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Mxfp4Linear`].
    pub struct Mxfp4LinearIo {
        /// `[tokens, k]` codes and scales.
        x: In,
        /// `[n, k]` MXFP4; may be in a private layout.
        weight: In,
        /// `[tokens, n]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Mxfp4Linear {
        /// Outputs.
        pub n: u64,
        /// Inputs, a multiple of 32.
        pub k: u64,
    }
}

impl Operator for Mxfp4Linear {
    const ID: &'static str = "gemm.mxfp4";
    type Io<I, O> = Mxfp4LinearIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.n > 0, "`n` must be positive")?;
        require(Self::ID, self.k > 0 && self.k.is_multiple_of(32), "`k` is not a multiple of 32")
    }
    fn operands(&self) -> Mxfp4LinearIo<Operand, Operand> {
        Mxfp4LinearIo {
            x: Operand::new(Enc::Q8, &[Of(Sym::Tokens), Is(self.k)]),
            weight: Operand::new(Enc::MXFP4, &[Is(self.n), Is(self.k)])
                .domain(Domain::Weight(Class::Dense)),
            y: Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.n)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.n, self.k))
    }
}
