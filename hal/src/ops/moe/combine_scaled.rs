//! `moe.combine_scaled`: the three places where engines apply the routed factor. Reference only.
//!
//! With outputs `x_i`, unscaled weights `w_i`, factor `f` and shared output `s`:
//!
//! * `weights`: `y = Σ (f w_i) x_i + s`, the model's own place (in front of the sum);
//! * `sum`: `y = f (Σ w_i x_i) + s`, after the sum, before the shared expert joins;
//! * `kernel`: `y = f (Σ w_i x_i + (1/f) s)`, a kernel that scales all it adds, with the shared expert
//!   as one more slot of weight `1/f`.
//!
//! The three agree but for rounding; applying the factor twice, never, or to the shared expert does
//! not. All f32 (f64 inside, one rounding). NaN stays in its row. Rows see only themselves.
//! Source: mechanisms A1.

use crate::ops::prelude::*;

choice! {
    /// Where the routed factor is applied.
    pub enum ScalePlacement {
        /// In the routing weights.
        Weights = "weights",
        /// On the routed sum.
        Sum = "sum",
        /// In a kernel that scales everything, the shared slot weighted by its inverse.
        Kernel = "kernel",
    }
}

io! {
    /// Operands of [`CombineScaled`].
    pub struct CombineScaledIo {
        /// `[tokens, top_k, hidden]` f32.
        x: In,
        /// `[tokens, top_k]` f32, normalised, without the factor.
        weight: In,
        /// `[tokens, hidden]` f32.
        shared: In,
        /// `[tokens, hidden]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct CombineScaled {
        /// Experts taken a row.
        pub top_k: u64,
        /// Width of the model.
        pub hidden: u64,
        /// The routed factor.
        pub factor: Real,
        /// Where it is applied.
        pub placement: ScalePlacement,
    }
}

impl Operator for CombineScaled {
    const ID: &'static str = "moe.combine_scaled";
    const CORE: bool = false;
    type Io<I, O> = CombineScaledIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.top_k > 0 && self.hidden > 0, "sizes must be positive")?;
        require(Self::ID, self.factor.value() > 0.0, "`factor` must be positive")
    }
    fn operands(&self) -> CombineScaledIo<Operand, Operand> {
        let (t, k, hidden) = (Of(Sym::Tokens), Is(self.top_k), Is(self.hidden));
        let row = Operand::new(Enc::F32, &[t, hidden]);
        CombineScaledIo {
            x: Operand::new(Enc::F32, &[t, k, hidden]),
            weight: Operand::new(Enc::F32, &[t, k]),
            shared: row.clone(),
            y: row,
        }
    }
}
