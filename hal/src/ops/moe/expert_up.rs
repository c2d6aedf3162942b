//! `moe.expert_up`: gate and up projections, the weighted gated unit and its FP8 cast in one pass.
//!
//! Fused: same bits as [`crate::GateUp`], [`crate::Swiglu`], [`crate::Cast`]. Slots without an
//! expert here are units of zeros: zeros, unless their weight is NaN or infinite.
//! Source: model report 3.11.

use crate::ops::prelude::*;
use crate::{Cast, CastIo, Experts, GateUp, GateUpIo, Swiglu, SwigluIo};

io! {
    /// Operands of [`ExpertUp`].
    pub struct ExpertUpIo {
        /// `[tokens, hidden]` codes and scales.
        x: In,
        /// `[tokens, top_k]` i32.
        expert: In,
        /// `[tokens, top_k]` f32.
        weight: In,
        /// `[local, inter, hidden]` MXFP4, gate.
        w1: In,
        /// `[local, inter, hidden]` MXFP4, up.
        w3: In,
        /// `[tokens, top_k inter]` codes and scales.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct ExpertUp {
        /// The experts.
        pub experts: Experts,
        /// Clamp of the gated unit, 0 for none.
        pub limit: Real,
    }
}

impl ExpertUp {
    fn gate_up(&self) -> GateUp {
        GateUp { experts: self.experts.clone() }
    }
    fn swiglu(&self) -> Swiglu {
        let Experts { top_k: slots, inter, .. } = self.experts;
        Swiglu { slots, inter, limit: self.limit, weighted: true }
    }
    fn cast(&self) -> Cast {
        Cast { to: Enc::Q8, width: self.experts.top_k * self.experts.inter }
    }
}

impl Operator for ExpertUp {
    const ID: &'static str = "moe.expert_up";
    type Io<I, O> = ExpertUpIo<I, O>;
    fn check(&self) -> Result<()> {
        self.gate_up().check()?;
        self.swiglu().check()
    }
    fn operands(&self) -> ExpertUpIo<Operand, Operand> {
        let (gate_up, swiglu) = (self.gate_up().operands(), self.swiglu().operands());
        ExpertUpIo {
            x: gate_up.x,
            expert: gate_up.expert,
            weight: swiglu.weight,
            w1: gate_up.w1,
            w3: gate_up.w3,
            y: self.cast().operands().y,
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let written_bytes = at.at(Sym::Tokens) * self.cast().width * 33 / 32;
        Cost { written_bytes, ..self.gate_up().cost(at) }
    }
    fn decompose(&self, io: ExpertUpIo<Ref, Ref>, to: &mut Steps) {
        let (t, width) = (Of(Sym::Tokens), self.cast().width);
        let both = to.temp(Enc::BF16, &[t, Is(2 * width)]);
        let unit = to.temp(Enc::BF16, &[t, Is(width)]);
        let (x, expert, w1, w3) = (io.x, io.expert, io.w1, io.w3);
        to.step(self.gate_up(), GateUpIo { x, expert, w1, w3, y: both });
        to.step(self.swiglu(), SwigluIo { x: both, weight: io.weight, y: unit });
        to.step(self.cast(), CastIo { x: unit, y: io.y });
    }
}
