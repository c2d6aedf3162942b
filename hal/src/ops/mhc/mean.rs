//! `mhc.mean`: the plain mean of the streams, `y[t] = bf(Σ_s h[t,s] / S)`.
//!
//! Roundings: fp32 sum in stream order (f64 in the reference), one to bf16. NaN stays in its row.
//! Rows see only themselves. What DSpark captures at the **input** of its target layers; `y` is
//! usually a column slice of the captured features. Source: model report 3.2.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MhcMean`].
    pub struct MhcMeanIo {
        /// `[tokens, streams, width]` bf16.
        streams: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcMean {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
    }
}

impl Operator for MhcMean {
    const ID: &'static str = "mhc.mean";
    type Io<I, O> = MhcMeanIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")
    }
    fn operands(&self) -> MhcMeanIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        MhcMeanIo {
            streams: Operand::new(Enc::BF16, &[t, s, w]),
            y: Operand::new(Enc::BF16, &[t, w]),
        }
    }
}
