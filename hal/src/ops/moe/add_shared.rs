//! `moe.add_shared`: routed sum plus shared expert, `y = bf(routed + shared)`.
//!
//! The shared expert has no routing weight and no factor. Roundings: one f32 addition (f64 in the
//! reference), one to bf16. NaN stays in its element. Rows see only themselves.
//! Source: model report 3.11.

use crate::ops::prelude::*;

io! {
    /// Operands of [`AddShared`].
    pub struct AddSharedIo {
        /// `[tokens, hidden]` f32.
        routed: In,
        /// `[tokens, hidden]` bf16.
        shared: In,
        /// `[tokens, hidden]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct AddShared {
        /// Width of the model.
        pub hidden: u64,
    }
}

impl Operator for AddShared {
    const ID: &'static str = "moe.add_shared";
    type Io<I, O> = AddSharedIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.hidden > 0, "`hidden` must be positive")
    }
    fn operands(&self) -> AddSharedIo<Operand, Operand> {
        let dims = [Of(Sym::Tokens), Is(self.hidden)];
        let row = Operand::new(Enc::BF16, &dims);
        AddSharedIo { routed: Operand::new(Enc::F32, &dims), shared: row.clone(), y: row }
    }
}
