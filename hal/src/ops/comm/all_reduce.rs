//! `comm.all_reduce`: `y = Σ_r x_r`, in rank order, on every rank.
//!
//! Roundings: f32 additions in rank order (f64 in the reference, one rounding), so the result is
//! the same on every rank and in every run. NaN in a row of any rank stays in that row. Used for
//! partial sums of experts and of `wo_b`. Source: model report 3.15.

use crate::ops::prelude::*;

io! {
    /// Operands of [`AllReduce`].
    pub struct AllReduceIo {
        /// `[tokens, width]` f32.
        x: In,
        /// `[tokens, width]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct AllReduce {
        /// Columns.
        pub width: u64,
        /// Ranks of the group.
        pub ranks: u64,
    }
}

impl Operator for AllReduce {
    const ID: &'static str = "comm.all_reduce";
    type Io<I, O> = AllReduceIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0 && self.ranks > 0, "sizes must be positive")
    }
    fn operands(&self) -> AllReduceIo<Operand, Operand> {
        let row = Operand::new(Enc::F32, &[Of(Sym::Tokens), Is(self.width)]);
        AllReduceIo { x: row.clone(), y: row }
    }
}
