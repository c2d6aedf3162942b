//! `moe.swiglu`: the clamped gated unit, `y = bf((g sigmoid(g)) u w)` with `g = min(gate, limit)`,
//! `u = clamp(up, -limit, limit)`.
//!
//! The gate has no lower clamp; clamps come before the sigmoid and act on bf16-rounded inputs. A
//! limit of 0 means no clamp. With `weighted`, `w` is the slot's routing weight, applied **here**,
//! before the rounding and the cast of the down projection; else 1.
//!
//! Roundings: fp32, in the order written (f64 in the reference), one to bf16. NaN passes the clamps
//! and stays in its element. Rows see only themselves. Cost: bytes. Runs for routed experts (one
//! slot per taken expert) and the shared one (one slot). Source: model report 3.11.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Swiglu`].
    pub struct SwigluIo {
        /// `[tokens, slots 2 inter]` bf16, gate then up in each slot.
        x: In,
        /// `[tokens, slots]` f32; absent without `weighted`.
        weight: In,
        /// `[tokens, slots inter]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Swiglu {
        /// Units side by side in a row.
        pub slots: u64,
        /// Width of one.
        pub inter: u64,
        /// Clamp, 0 for none.
        pub limit: Real,
        /// Whether slots have weights.
        pub weighted: bool,
    }
}

impl Operator for Swiglu {
    const ID: &'static str = "moe.swiglu";
    type Io<I, O> = SwigluIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.slots > 0 && self.inter > 0, "sizes must be positive")?;
        require(Self::ID, self.limit.value() >= 0.0, "`limit` must not be negative")
    }
    fn operands(&self) -> SwigluIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        SwigluIo {
            x: Operand::new(Enc::BF16, &[t, Is(self.slots * 2 * self.inter)]),
            weight: Operand::new(Enc::F32, &[t, Is(self.slots)]).when(self.weighted),
            y: Operand::new(Enc::BF16, &[t, Is(self.slots * self.inter)]),
        }
    }
}
