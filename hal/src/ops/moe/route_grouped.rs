//! `moe.route_grouped`: V3's routing, sigmoid scores and a choice of groups first. Reference only.
//!
//! `s_e = sigmoid(logit_e)`, key `s_e + b_e`; a group's score is the sum of its two largest keys;
//! the `groups_taken` best groups stay, ties to the lower group; of their experts the `top_k`
//! largest keys are taken, best first, ties to the lower expert;
//! `weight = s / (Σ taken s + 1e-20) x scale`.
//!
//! Roundings, NaN, rows: as [`crate::Route`]; a group's score is an f32 sum. Source: mechanisms A10.

use crate::ops::prelude::*;

io! {
    /// Operands of [`RouteGrouped`].
    pub struct RouteGroupedIo {
        /// `[tokens, experts]` f32.
        logits: In,
        /// `[experts]` f32, for selection only.
        bias: In,
        /// `[tokens, top_k]` i32, best key first.
        expert: Out,
        /// `[tokens, top_k]` f32.
        weight: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RouteGrouped {
        /// Experts there are.
        pub experts: u64,
        /// Groups they form, of equal size and at least two experts.
        pub groups: u64,
        /// Groups that stay.
        pub groups_taken: u64,
        /// Experts taken a row.
        pub top_k: u64,
        /// Factor of the normalised weights.
        pub scale: Real,
    }
}

impl Operator for RouteGrouped {
    const ID: &'static str = "moe.route_grouped";
    const CORE: bool = false;
    type Io<I, O> = RouteGroupedIo<I, O>;
    fn check(&self) -> Result<()> {
        let grouped = self.groups > 0 && self.experts.is_multiple_of(self.groups);
        require(Self::ID, grouped, "`groups` does not divide `experts`")?;
        let size = self.experts / self.groups;
        require(Self::ID, size >= 2, "a group needs two experts")?;
        let some = self.groups_taken > 0 && self.groups_taken <= self.groups;
        require(Self::ID, some, "`groups_taken` is not within 1 and `groups`")?;
        let fits = self.top_k > 0 && self.top_k <= self.groups_taken * size;
        require(Self::ID, fits, "`top_k` exceeds the experts of the groups taken")
    }
    fn operands(&self) -> RouteGroupedIo<Operand, Operand> {
        let (t, k) = (Of(Sym::Tokens), Is(self.top_k));
        RouteGroupedIo {
            logits: Operand::new(Enc::F32, &[t, Is(self.experts)]),
            bias: Operand::new(Enc::F32, &[Is(self.experts)]),
            expert: Operand::new(Enc::I32, &[t, k]),
            weight: Operand::new(Enc::F32, &[t, k]),
        }
    }
}
