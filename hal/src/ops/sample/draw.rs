//! `sample.draw`: a token from a distribution, the smallest id whose running sum exceeds
//! `uniform x mass`.
//!
//! The running sum walks ids upward in f64. If rounding leaves none, the last id with positive mass
//! is taken. A row whose mass is not positive and finite, as with a NaN, gives -1: the engine fails
//! that request and no other. Exact given the uniform. Rows see only themselves. Source: engine design, sampling.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Draw`].
    pub struct DrawIo {
        /// `[tokens, vocab]` f32.
        p: In,
        /// `[tokens]` f32 in [0, 1).
        uniform: In,
        /// `[tokens]` i32.
        token: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Draw {
        /// Size of the vocabulary.
        pub vocab: u64,
    }
}

impl Operator for Draw {
    const ID: &'static str = "sample.draw";
    type Io<I, O> = DrawIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")
    }
    fn operands(&self) -> DrawIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        DrawIo {
            p: Operand::new(Enc::F32, &[t, Is(self.vocab)]).domain(Domain::Distribution),
            uniform: Operand::new(Enc::F32, &[t]).domain(Domain::Uniform),
            token: Operand::new(Enc::I32, &[t]),
        }
    }
}
