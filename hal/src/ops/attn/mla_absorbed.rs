//! `attn.mla_absorbed`: V2/V3 latent attention with the up-projections absorbed into query and
//! output. Reference only.
//!
//! `q'_h = uk_hᵀ q_nope`, `s_j = scale (q'_h · c_j + q_rope · k_rope_j)` for `j < visible[t]`,
//! softmax, `y_h = uv_h (Σ p_j c_j)`. Otherwise as [`crate::MlaExpanded`]. Source: mechanisms A9.

use crate::ops::prelude::*;
use crate::{Mla, MlaExpandedIo};

io! {
    /// Operands of [`MlaAbsorbed`]; those of [`MlaExpandedIo`].
    pub struct MlaAbsorbedIo {
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
    /// See the [page](self).
    pub struct MlaAbsorbed {
        /// Sizes.
        pub mla: Mla,
    }
}

impl Operator for MlaAbsorbed {
    const ID: &'static str = "attn.mla_absorbed";
    const CORE: bool = false;
    type Io<I, O> = MlaAbsorbedIo<I, O>;
    fn check(&self) -> Result<()> {
        self.mla.check(Self::ID)
    }
    fn operands(&self) -> MlaAbsorbedIo<Operand, Operand> {
        let MlaExpandedIo { q, latent, k_rope, uk, uv, visible, y } = self.mla.operands();
        MlaAbsorbedIo { q, latent, k_rope, uk, uv, visible, y }
    }
}
