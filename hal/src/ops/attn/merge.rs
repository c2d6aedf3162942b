//! `attn.merge`: two parts of one attention put together by their log-sum-exps.
//!
//! With `m = max(lse_a, lse_b)`, `w = exp(lse - m)` for each part:
//! `y = (w_a a + w_b b) / (w_a + w_b + exp(sink - m))`; the sink's term only with `sink`, and then
//! neither part may have counted it. `lse = m + ln(denominator)`.
//!
//! Roundings: fp32 (f64 in the reference), one to bf16. A part with `lse = -inf` has no weight and
//! its values are not multiplied. Both `-inf`: zeros. NaN stays in its row and head. Rows see only
//! themselves. Used when an attention is split over entries or ranks. Source: model report 3.9.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MergeAttention`].
    pub struct MergeAttentionIo {
        /// `[tokens, heads, head_dim]` bf16.
        a: In,
        /// `[tokens, heads]` f32.
        lse_a: In,
        /// `[tokens, heads, head_dim]` bf16.
        b: In,
        /// `[tokens, heads]` f32.
        lse_b: In,
        /// `[heads]` f32; absent without `sink`.
        sink: In,
        /// `[tokens, heads, head_dim]` bf16.
        y: Out,
        /// `[tokens, heads]` f32.
        lse: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MergeAttention {
        /// Query heads.
        pub heads: u64,
        /// Dims of a head.
        pub head_dim: u64,
        /// Whether to add the sink.
        pub sink: bool,
    }
}

impl Operator for MergeAttention {
    const ID: &'static str = "attn.merge";
    type Io<I, O> = MergeAttentionIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.heads > 0 && self.head_dim > 0, "sizes must be positive")
    }
    fn operands(&self) -> MergeAttentionIo<Operand, Operand> {
        let (t, h) = (Of(Sym::Tokens), Is(self.heads));
        let part = Operand::new(Enc::BF16, &[t, h, Is(self.head_dim)]);
        let lse = Operand::new(Enc::F32, &[t, h]);
        MergeAttentionIo {
            a: part.clone(),
            lse_a: lse.clone(),
            b: part.clone(),
            lse_b: lse.clone(),
            sink: Operand::new(Enc::F32, &[h]).when(self.sink),
            y: part,
            lse,
        }
    }
}
