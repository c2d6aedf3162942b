//! `moe.route_hash`: V4's routing of its first layers, experts by token id. Reference only.
//!
//! `expert[t] = table[id[t]]`; `s_e = sqrt(softplus(logit_e))`;
//! `weight = s / (Σ taken s + 1e-20) x scale`. No bias.
//!
//! An id outside, or a table entry outside, gives expert -1 with weight 0. Roundings, NaN, rows: as
//! [`crate::Route`]. Source: model report 6.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`RouteHash`].
    pub struct RouteHashIo {
        /// `[tokens, experts]` f32.
        logits: In,
        /// `[tokens]` i32.
        id: In,
        /// `[vocab, top_k]` i32.
        table: In,
        /// `[tokens, top_k]` i32, in the table's order.
        expert: Out,
        /// `[tokens, top_k]` f32.
        weight: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RouteHash {
        /// Rows of the table.
        pub vocab: u64,
        /// Experts there are.
        pub experts: u64,
        /// Experts taken a row.
        pub top_k: u64,
        /// Factor of the normalised weights.
        pub scale: Real,
    }
}

impl Operator for RouteHash {
    const ID: &'static str = "moe.route_hash";
    const CORE: bool = false;
    type Io<I, O> = RouteHashIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")?;
        let fits = self.top_k > 0 && self.top_k <= self.experts;
        require(Self::ID, fits, "`top_k` is not within 1 and `experts`")
    }
    fn operands(&self) -> RouteHashIo<Operand, Operand> {
        let (t, k) = (Of(Sym::Tokens), Is(self.top_k));
        RouteHashIo {
            logits: Operand::new(Enc::F32, &[t, Is(self.experts)]),
            id: Operand::index(&[t], IndexBound::Fixed(self.vocab)),
            table: Operand::index(&[Is(self.vocab), k], IndexBound::Fixed(self.experts)),
            expert: Operand::new(Enc::I32, &[t, k]),
            weight: Operand::new(Enc::F32, &[t, k]),
        }
    }
}
