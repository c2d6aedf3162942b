//! `moe.down`: each taken expert's down projection, `y[t,i] = bf(w2_e x[t,i])`, `e = expert[t,i]`.
//!
//! Otherwise as [`crate::GateUp`]: slots without an expert here give zeros.
//! Cost: `2 t top_k hidden inter` FLOPs. Source: model report 3.11.

use crate::Experts;
use crate::ops::prelude::*;

io! {
    /// Operands of [`Down`].
    pub struct DownIo {
        /// `[tokens, top_k inter]` codes and scales.
        x: In,
        /// `[tokens, top_k]` i32.
        expert: In,
        /// `[local, hidden, inter]` MXFP4; may be in a private layout.
        w2: In,
        /// `[tokens, top_k hidden]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Down {
        /// The experts.
        pub experts: Experts,
    }
}

impl Operator for Down {
    const ID: &'static str = "moe.down";
    type Io<I, O> = DownIo<I, O>;
    fn check(&self) -> Result<()> {
        self.experts.check(Self::ID)
    }
    fn operands(&self) -> DownIo<Operand, Operand> {
        let (t, e) = (Of(Sym::Tokens), &self.experts);
        DownIo {
            x: Operand::new(Enc::Q8, &[t, Is(e.top_k * e.inter)]),
            expert: e.index(),
            w2: e.weight(e.hidden, e.inter),
            y: Operand::new(Enc::BF16, &[t, Is(e.top_k * e.hidden)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let (t, e) = (at.at(Sym::Tokens), &self.experts);
        Cost {
            flops: e.flops(t, e.hidden, e.inter),
            read_bytes: t * e.top_k * (e.inter * 33 / 32 + 4)
                + e.weight_bytes(t, e.hidden, e.inter),
            written_bytes: t * e.top_k * e.hidden * 2,
        }
    }
}
