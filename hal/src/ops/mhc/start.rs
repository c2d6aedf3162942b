//! `mhc.start`: the embedding copied to every stream, and the mix that reads stream 0.
//!
//! `h[t,s] = x[t]`, `pre[t] = (1, 0, …)`. No rounding. Rows see only themselves. Runs once at the
//! bottom of the model and once per draft block. Source: model report 3.2.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MhcStart`].
    pub struct MhcStartIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[tokens, streams, width]` bf16.
        streams: Out,
        /// `[tokens, streams]` f32.
        pre: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcStart {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
    }
}

impl Operator for MhcStart {
    const ID: &'static str = "mhc.start";
    type Io<I, O> = MhcStartIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")
    }
    fn operands(&self) -> MhcStartIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        MhcStartIo {
            x: Operand::new(Enc::BF16, &[t, w]),
            streams: Operand::new(Enc::BF16, &[t, s, w]),
            pre: Operand::new(Enc::F32, &[t, s]),
        }
    }
}
