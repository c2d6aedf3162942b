//! `moe.combine`: a row's expert outputs added up, `y[t] = Σ_i x[t,i]`, in order of ascending expert.
//!
//! Slots whose expert is -1, outside or held elsewhere are skipped, not added as zeros.
//! Roundings: f32 sum (f64 in the reference), one to f32. NaN stays in its row. Rows see only
//! themselves. The f32 result is what ranks add up before the shared expert joins.
//! Source: model report 3.11.

use crate::Experts;
use crate::ops::prelude::*;

io! {
    /// Operands of [`Combine`].
    pub struct CombineIo {
        /// `[tokens, top_k hidden]` bf16.
        x: In,
        /// `[tokens, top_k]` i32.
        expert: In,
        /// `[tokens, hidden]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Combine {
        /// The experts.
        pub experts: Experts,
    }
}

impl Operator for Combine {
    const ID: &'static str = "moe.combine";
    type Io<I, O> = CombineIo<I, O>;
    fn check(&self) -> Result<()> {
        self.experts.check(Self::ID)
    }
    fn operands(&self) -> CombineIo<Operand, Operand> {
        let (t, e) = (Of(Sym::Tokens), &self.experts);
        CombineIo {
            x: Operand::new(Enc::BF16, &[t, Is(e.top_k * e.hidden)]),
            expert: e.index(),
            y: Operand::new(Enc::F32, &[t, Is(e.hidden)]),
        }
    }
}
