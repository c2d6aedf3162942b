//! `moe.expert_down`: down projections and their sum in one pass.
//!
//! Fused: same bits as [`crate::Down`], [`crate::Combine`]. Source: model report 3.11.

use crate::ops::prelude::*;
use crate::{Combine, CombineIo, Down, DownIo, Experts};

io! {
    /// Operands of [`ExpertDown`].
    pub struct ExpertDownIo {
        /// `[tokens, top_k inter]` codes and scales.
        x: In,
        /// `[tokens, top_k]` i32.
        expert: In,
        /// `[local, hidden, inter]` MXFP4.
        w2: In,
        /// `[tokens, hidden]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct ExpertDown {
        /// The experts.
        pub experts: Experts,
    }
}

impl ExpertDown {
    fn down(&self) -> Down {
        Down { experts: self.experts.clone() }
    }
    fn combine(&self) -> Combine {
        Combine { experts: self.experts.clone() }
    }
}

impl Operator for ExpertDown {
    const ID: &'static str = "moe.expert_down";
    type Io<I, O> = ExpertDownIo<I, O>;
    fn check(&self) -> Result<()> {
        self.down().check()
    }
    fn operands(&self) -> ExpertDownIo<Operand, Operand> {
        let down = self.down().operands();
        let y = self.combine().operands().y;
        ExpertDownIo { x: down.x, expert: down.expert, w2: down.w2, y }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let written_bytes = at.at(Sym::Tokens) * self.experts.hidden * 4;
        Cost { written_bytes, ..self.down().cost(at) }
    }
    fn decompose(&self, io: ExpertDownIo<Ref, Ref>, to: &mut Steps) {
        let width = self.experts.top_k * self.experts.hidden;
        let each = to.temp(Enc::BF16, &[Of(Sym::Tokens), Is(width)]);
        let (x, expert) = (io.x, io.expert);
        to.step(self.down(), DownIo { x, expert, w2: io.w2, y: each });
        to.step(self.combine(), CombineIo { x: each, expert, y: io.y });
    }
}
