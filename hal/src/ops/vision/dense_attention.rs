//! `vision.attention`: full softmax attention over the patches of one picture.
//!
//! `s_j = scale q_h · k_{h,j}`, `m = max s`, `p_j = exp(s_j - m)`, `y_h = (Σ bf(p_j) v_{h,j}) / Σ p_j`. No
//! mask, no sink. Roundings: dots and exponentials to f32, the numerator's weights to bf16, the
//! denominator's not; sums in key order (f64 in the reference); one to bf16. No keys: zeros.
//! NaN in a query stays in its row; NaN in a key or value reaches every row. A row's result depends
//! on all keys, so a launch holds one picture. Cost: `4 t keys width` FLOPs. Source: vision 5.3.

use crate::ops::prelude::*;

io! {
    /// Operands of [`DenseAttention`]; each may be a column slice.
    pub struct DenseAttentionIo {
        /// `[tokens, heads head_dim]` bf16.
        q: In,
        /// `[keys, heads head_dim]` bf16.
        k: In,
        /// `[keys, heads head_dim]` bf16.
        v: In,
        /// `[tokens, heads head_dim]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct DenseAttention {
        /// Heads of a row.
        pub heads: u64,
        /// Dims of a head.
        pub head_dim: u64,
        /// Softmax scale.
        pub scale: Real,
    }
}

impl Operator for DenseAttention {
    const ID: &'static str = "vision.attention";
    type Io<I, O> = DenseAttentionIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.heads > 0 && self.head_dim > 0, "sizes must be positive")
    }
    fn operands(&self) -> DenseAttentionIo<Operand, Operand> {
        let width = Is(self.heads * self.head_dim);
        let rows = |sym| Operand::new(Enc::BF16, &[Of(sym), width]);
        let (q, k) = (rows(Sym::Tokens), rows(Sym::Keys));
        DenseAttentionIo { q: q.clone(), k: k.clone(), v: k, y: q }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let width = self.heads * self.head_dim;
        Cost::of(self, at, 2.0 * matmul_flops(at.at(Sym::Tokens), at.at(Sym::Keys), width))
    }
}
