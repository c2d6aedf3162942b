//! `sample.log_probs`: log-probabilities of the raw distribution, of the chosen token and the best.
//!
//! `log p(x) = l_x - max - ln Σ exp(l - max)`, of the logits as given (no temperature, no filter).
//! The `top` best are in falling order, ties to the lower id; ids past the vocabulary's size are -1
//! with -inf. A chosen token of -1 or outside gives NaN.
//!
//! Roundings: f64 inside, one to f32. A NaN logit makes the row's numbers NaN; a row
//! whose largest logit is infinite has none. Rows see only
//! themselves. Source: engine design, logprobs.

use crate::ops::prelude::*;

io! {
    /// Operands of [`LogProbs`].
    pub struct LogProbsIo {
        /// `[tokens, vocab]` f32.
        logits: In,
        /// `[tokens]` i32.
        token: In,
        /// `[tokens]` f32.
        chosen: Out,
        /// `[tokens, top]` i32; absent without `top`.
        top_id: Out,
        /// `[tokens, top]` f32; absent without `top`.
        top: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct LogProbs {
        /// Size of the vocabulary.
        pub vocab: u64,
        /// How many of the best, 0 for none.
        pub top: u64,
    }
}

impl Operator for LogProbs {
    const ID: &'static str = "sample.log_probs";
    type Io<I, O> = LogProbsIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")
    }
    fn operands(&self) -> LogProbsIo<Operand, Operand> {
        let (t, top, some) = (Of(Sym::Tokens), Is(self.top), self.top > 0);
        LogProbsIo {
            logits: Operand::new(Enc::F32, &[t, Is(self.vocab)]),
            token: Operand::index(&[t], IndexBound::Fixed(self.vocab)),
            chosen: Operand::new(Enc::F32, &[t]),
            top_id: Operand::new(Enc::I32, &[t, top]).when(some),
            top: Operand::new(Enc::F32, &[t, top]).when(some),
        }
    }
}
