//! `sample.mask`: a grammar's verdict, `logits[t,x] <- -inf` where bit x of `allowed[t]` is 0, in
//! place.
//!
//! Bit x is bit `x mod 32` of word `x / 32`. Bits past the vocabulary are ignored. Exact; NaN at an
//! allowed id stays, at another it is overwritten. Rows see only themselves.
//! Source: engine design, structured output.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MaskLogits`].
    pub struct MaskLogitsIo {
        /// `[tokens, ceil(vocab / 32)]` u32.
        allowed: In,
        /// `[tokens, vocab]` f32, in place.
        logits: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MaskLogits {
        /// Size of the vocabulary.
        pub vocab: u64,
    }
}

impl Operator for MaskLogits {
    const ID: &'static str = "sample.mask";
    type Io<I, O> = MaskLogitsIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")
    }
    fn operands(&self) -> MaskLogitsIo<Operand, Operand> {
        let (t, words) = (Of(Sym::Tokens), Is(self.vocab.div_ceil(32)));
        MaskLogitsIo {
            allowed: Operand::new(Enc::U32, &[t, words]).domain(Domain::Bytes),
            logits: Operand::new(Enc::F32, &[t, Is(self.vocab)]),
        }
    }
}
