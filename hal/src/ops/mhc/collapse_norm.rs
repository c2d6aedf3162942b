//! `mhc.collapse_norm`: collapse, RMSNorm and FP8 cast in one pass over the streams.
//!
//! Fused: same bits as [`crate::MhcCollapse`], [`crate::RmsNorm`], [`crate::Cast`]. Gives both the
//! normed bf16 row (router, compressor, index weights) and its FP8 form (linears). Runs at the top
//! of every sub-layer. Source: model report 3.3.

use crate::ops::prelude::*;
use crate::{Cast, CastIo, MhcCollapse, MhcCollapseIo, RmsNorm, RmsNormIo};

io! {
    /// Operands of [`MhcCollapseNorm`].
    pub struct MhcCollapseNormIo {
        /// `[tokens, streams, width]` bf16.
        streams: In,
        /// `[tokens, streams]` f32.
        pre: In,
        /// `[width]` bf16.
        weight: In,
        /// `[tokens, width]` bf16, normed.
        y: Out,
        /// `[tokens, width]` codes and scales of `y`.
        y8: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcCollapseNorm {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy, a multiple of 32.
        pub width: u64,
        /// Added to the mean square.
        pub eps: Real,
    }
}

impl MhcCollapseNorm {
    fn collapse(&self) -> MhcCollapse {
        MhcCollapse { streams: self.streams, width: self.width }
    }
    fn norm(&self) -> RmsNorm {
        RmsNorm { width: self.width, eps: self.eps }
    }
    fn cast(&self) -> Cast {
        Cast { to: Enc::Q8, width: self.width }
    }
}

impl Operator for MhcCollapseNorm {
    const ID: &'static str = "mhc.collapse_norm";
    type Io<I, O> = MhcCollapseNormIo<I, O>;
    fn check(&self) -> Result<()> {
        self.collapse().check()?;
        self.norm().check()?;
        self.cast().check()
    }
    fn operands(&self) -> MhcCollapseNormIo<Operand, Operand> {
        let (collapse, norm) = (self.collapse().operands(), self.norm().operands());
        MhcCollapseNormIo {
            streams: collapse.streams,
            pre: collapse.pre,
            weight: norm.weight,
            y: norm.y,
            y8: self.cast().operands().y,
        }
    }
    fn decompose(&self, io: MhcCollapseNormIo<Ref, Ref>, to: &mut Steps) {
        let x = to.temp(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]);
        to.step(self.collapse(), MhcCollapseIo { streams: io.streams, pre: io.pre, y: x });
        to.step(self.norm(), RmsNormIo { x, weight: io.weight, y: io.y });
        to.step(self.cast(), CastIo { x: io.y, y: io.y8 });
    }
}
