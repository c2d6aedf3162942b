//! `norm.rms_cast`: RMSNorm, then the FP8 cast of its bf16 result, in one pass.
//!
//! Fused: same bits as [`crate::RmsNorm`] followed by [`crate::Cast`] to `Q8`. Used before `wq_b`
//! and the indexer's `wq_b`, which share the cast. Source: model report 3.5.

use crate::ops::prelude::*;
use crate::{Cast, CastIo, RmsNorm, RmsNormIo};

io! {
    /// Operands of [`RmsNormCast`].
    pub struct RmsNormCastIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[width]` bf16.
        weight: In,
        /// `[tokens, width]` codes and scales.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RmsNormCast {
        /// Columns, a multiple of 32.
        pub width: u64,
        /// Added to the mean square.
        pub eps: Real,
    }
}

impl RmsNormCast {
    fn norm(&self) -> RmsNorm {
        RmsNorm { width: self.width, eps: self.eps }
    }
    fn cast(&self) -> Cast {
        Cast { to: Enc::Q8, width: self.width }
    }
}

impl Operator for RmsNormCast {
    const ID: &'static str = "norm.rms_cast";
    type Io<I, O> = RmsNormCastIo<I, O>;
    fn check(&self) -> Result<()> {
        self.norm().check()?;
        self.cast().check()
    }
    fn operands(&self) -> RmsNormCastIo<Operand, Operand> {
        let norm = self.norm().operands();
        RmsNormCastIo { x: norm.x, weight: norm.weight, y: self.cast().operands().y }
    }
    fn decompose(&self, io: RmsNormCastIo<Ref, Ref>, to: &mut Steps) {
        let normed = to.temp(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]);
        to.step(self.norm(), RmsNormIo { x: io.x, weight: io.weight, y: normed });
        to.step(self.cast(), CastIo { x: normed, y: io.y });
    }
}
