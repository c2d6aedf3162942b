//! `comm.all_gather`: `y[t] = [x_0[t] | x_1[t] | …]` in rank order, on every rank; exact.
//!
//! Used for logits split by vocabulary. Source: model report 3.15.

use crate::ops::prelude::*;

io! {
    /// Operands of [`AllGather`].
    pub struct AllGatherIo {
        /// `[tokens, width]` f32.
        x: In,
        /// `[tokens, ranks width]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct AllGather {
        /// Columns of one rank.
        pub width: u64,
        /// Ranks of the group.
        pub ranks: u64,
    }
}

impl Operator for AllGather {
    const ID: &'static str = "comm.all_gather";
    type Io<I, O> = AllGatherIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0 && self.ranks > 0, "sizes must be positive")
    }
    fn operands(&self) -> AllGatherIo<Operand, Operand> {
        let row = |cols| Operand::new(Enc::F32, &[Of(Sym::Tokens), Is(cols)]);
        AllGatherIo { x: row(self.width), y: row(self.width * self.ranks) }
    }
}
