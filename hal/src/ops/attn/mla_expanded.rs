//! `attn.mla_expanded`: V2/V3 latent attention with keys and values expanded per head. Reference
//! only.
//!
//! `k_h = [uk_h c | k_rope]`, `v_h = uv_h c` for each latent c;
//! `s_j = scale [q_nope | q_rope]_h · k_{h,j}` for `j < visible[t]`, softmax, `y_h = Σ p_j v_{h,j}`.
//! All f32 (f64 inside). Equal to [`crate::MlaAbsorbed`] but for rounding. A row that sees nothing
//! gives zeros. NaN stays in its row unless it is in a visible key. Source: mechanisms A9, A10.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MlaExpanded`].
    pub struct MlaExpandedIo {
        /// `[tokens, heads, nope + rope]` f32.
        q: In,
        /// `[keys, latent]` f32.
        latent: In,
        /// `[keys, rope]` f32, rotated.
        k_rope: In,
        /// `[heads, nope, latent]` f32.
        uk: In,
        /// `[heads, value, latent]` f32.
        uv: In,
        /// `[tokens]` i32, keys each row may see.
        visible: In,
        /// `[tokens, heads, value]` f32.
        y: Out,
    }
}

descriptor! {
    /// Sizes of a V2/V3 latent attention.
    pub struct Mla {
        /// Query heads.
        pub heads: u64,
        /// Dims without position.
        pub nope: u64,
        /// Rotary dims.
        pub rope: u64,
        /// Width of the latent.
        pub latent: u64,
        /// Dims of a value.
        pub value: u64,
        /// Softmax scale.
        pub scale: Real,
    }
}

impl Mla {
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        let sizes = [self.heads, self.nope, self.rope, self.latent, self.value];
        require(op, sizes.iter().all(|n| *n > 0), "sizes must be positive")
    }
    pub(crate) fn operands(&self) -> MlaExpandedIo<Operand, Operand> {
        let (t, keys, h, c) = (Of(Sym::Tokens), Of(Sym::Keys), Is(self.heads), Is(self.latent));
        let f32s = |dims: &[crate::Dim]| Operand::new(Enc::F32, dims);
        MlaExpandedIo {
            q: f32s(&[t, h, Is(self.nope + self.rope)]),
            latent: f32s(&[keys, c]),
            k_rope: f32s(&[keys, Is(self.rope)]),
            uk: f32s(&[h, Is(self.nope), c]),
            uv: f32s(&[h, Is(self.value), c]),
            visible: Operand::new(Enc::I32, &[t])
                .domain(Domain::Count(IndexBound::Rows(Sym::Keys, 1))),
            y: f32s(&[t, h, Is(self.value)]),
        }
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MlaExpanded {
        /// Sizes.
        pub mla: Mla,
    }
}

impl Operator for MlaExpanded {
    const ID: &'static str = "attn.mla_expanded";
    const CORE: bool = false;
    type Io<I, O> = MlaExpandedIo<I, O>;
    fn check(&self) -> Result<()> {
        self.mla.check(Self::ID)
    }
    fn operands(&self) -> MlaExpandedIo<Operand, Operand> {
        self.mla.operands()
    }
}
