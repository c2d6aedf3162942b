//! `norm.rms_rotate`: RMSNorm of one vector a row, then its rotation, in one pass.
//!
//! Fused: same bits as [`crate::RmsNorm`] followed by [`crate::Rotate`] with one head.
//! Source: model report 3.7.

use crate::ops::prelude::*;
use crate::{RmsNorm, RmsNormIo, Rotate, RotateIo};

io! {
    /// Operands of [`RmsNormRotate`].
    pub struct RmsNormRotateIo {
        /// `[tokens, head_dim]` bf16.
        x: In,
        /// `[head_dim]` bf16.
        weight: In,
        /// `[tokens]` i32.
        position: In,
        /// `[tokens, head_dim]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RmsNormRotate {
        /// Added to the mean square.
        pub eps: Real,
        /// The rotation, of one head.
        pub rotate: Rotate,
    }
}

impl RmsNormRotate {
    fn norm(&self) -> RmsNorm {
        RmsNorm { width: self.rotate.head_dim, eps: self.eps }
    }
}

impl Operator for RmsNormRotate {
    const ID: &'static str = "norm.rms_rotate";
    type Io<I, O> = RmsNormRotateIo<I, O>;
    fn check(&self) -> Result<()> {
        self.norm().check()?;
        self.rotate.check()?;
        require(Self::ID, self.rotate.heads == 1, "`rotate` must have one head")
    }
    fn operands(&self) -> RmsNormRotateIo<Operand, Operand> {
        let (norm, rotate) = (self.norm().operands(), self.rotate.operands());
        RmsNormRotateIo { x: norm.x, weight: norm.weight, position: rotate.position, y: rotate.x }
    }
    fn decompose(&self, io: RmsNormRotateIo<Ref, Ref>, to: &mut Steps) {
        to.step(self.norm(), RmsNormIo { x: io.x, weight: io.weight, y: io.y });
        to.step(self.rotate.clone(), RotateIo { x: io.y, position: io.position });
    }
}
