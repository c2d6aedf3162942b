//! `moe.route`: which experts a row goes to, and with what weights.
//!
//! `s_e = sqrt(softplus(logit_e))`, softplus(z) = z for z > 20 else log1p(exp z);
//! selection key `s_e + b_e`, with `b` the picture bias where the row's flag is set;
//! the `top_k` largest keys are taken, best first, ties to the lower expert;
//! `weight = s / (Σ taken s + 1e-20) x scale`. The bias never enters a weight.
//!
//! Roundings: fp32 (f64 in the reference; s rounded to f32 before keys and sums, keys are f32 sums).
//! An fp32 `exp z` loses its bits below -87, where `exp(z / 2)` is `s` to fp32.
//! A NaN logit gives a NaN key, which ranks below every number; an infinite one has an infinite
//! score. Weights of such a row may be NaN; other rows are untouched. A sum of zero gives zeros.
//! Rows see only themselves. Exact in its choice given the keys. Cost: bytes.
//! Source: model report 3.11; vision 8.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Route`].
    pub struct RouteIo {
        /// `[tokens, experts]` f32.
        logits: In,
        /// `[experts]` f32, for selection only.
        bias: In,
        /// `[experts]` f32, the same for picture rows; absent without `pictures`.
        bias_picture: In,
        /// `[tokens]` i32, 1 for rows of a picture span; absent without `pictures`.
        picture: In,
        /// `[tokens, top_k]` i32, best key first.
        expert: Out,
        /// `[tokens, top_k]` f32.
        weight: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Route {
        /// Experts there are.
        pub experts: u64,
        /// Experts taken a row.
        pub top_k: u64,
        /// Factor of the normalised weights.
        pub scale: Real,
        /// Whether picture rows have a bias of their own.
        pub pictures: bool,
    }
}

impl Operator for Route {
    const ID: &'static str = "moe.route";
    type Io<I, O> = RouteIo<I, O>;
    fn check(&self) -> Result<()> {
        let fits = self.top_k > 0 && self.top_k <= self.experts;
        require(Self::ID, fits, "`top_k` is not within 1 and `experts`")
    }
    fn operands(&self) -> RouteIo<Operand, Operand> {
        let (t, experts, k) = (Of(Sym::Tokens), Is(self.experts), Is(self.top_k));
        RouteIo {
            logits: Operand::new(Enc::F32, &[t, experts]),
            bias: Operand::new(Enc::F32, &[experts]),
            bias_picture: Operand::new(Enc::F32, &[experts]).when(self.pictures),
            picture: Operand::new(Enc::I32, &[t]).domain(Domain::Flag).when(self.pictures),
            expert: Operand::new(Enc::I32, &[t, k]),
            weight: Operand::new(Enc::F32, &[t, k]),
        }
    }
}
