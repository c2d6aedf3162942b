//! `mhc.expand`: a sub-layer's output spread over the mixed residual,
//! `h'[t,k] = bf(post[t,k] x[t] + Σ_j comb[t,j,k] h[t,j])`.
//!
//! The first index of `comb` is the source stream; the transposed reading also runs and is wrong.
//! Roundings: products and sums in fp32 steps, the sources in order, then the `post` term; one to
//! bf16. NaN stays in its row. Rows see only themselves. Source: model report 3.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MhcExpand`].
    pub struct MhcExpandIo {
        /// `[tokens, width]` bf16, the sub-layer's output.
        x: In,
        /// `[tokens, streams, width]` bf16, the residual.
        residual: In,
        /// `[tokens, streams]` f32.
        post: In,
        /// `[tokens, streams, streams]` f32.
        comb: In,
        /// `[tokens, streams, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcExpand {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
    }
}

impl Operator for MhcExpand {
    const ID: &'static str = "mhc.expand";
    type Io<I, O> = MhcExpandIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")
    }
    fn operands(&self) -> MhcExpandIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        let streams = Operand::new(Enc::BF16, &[t, s, w]);
        MhcExpandIo {
            x: Operand::new(Enc::BF16, &[t, w]),
            residual: streams.clone(),
            post: Operand::new(Enc::F32, &[t, s]),
            comb: Operand::new(Enc::F32, &[t, s, s]),
            y: streams,
        }
    }
}
