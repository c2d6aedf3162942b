//! `mhc.collapse`: one vector from the streams, `x[t] = bf(Σ_s pre[t,s] h[t,s])`.
//!
//! Roundings: products and sums in fp32 steps in stream order, one to bf16. NaN stays in its row.
//! Rows see only themselves. The mix is the one handed down from the sub-layer before: the
//! model's single-pass mixing uses `pre` one sub-layer late. Source: model report 3.3, 3.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MhcCollapse`].
    pub struct MhcCollapseIo {
        /// `[tokens, streams, width]` bf16.
        streams: In,
        /// `[tokens, streams]` f32.
        pre: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcCollapse {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
    }
}

impl Operator for MhcCollapse {
    const ID: &'static str = "mhc.collapse";
    type Io<I, O> = MhcCollapseIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")
    }
    fn operands(&self) -> MhcCollapseIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        MhcCollapseIo {
            streams: Operand::new(Enc::BF16, &[t, s, w]),
            pre: Operand::new(Enc::F32, &[t, s]),
            y: Operand::new(Enc::BF16, &[t, w]),
        }
    }
}
