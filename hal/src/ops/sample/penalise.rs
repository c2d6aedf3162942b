//! `sample.penalise`: repetition, presence and frequency penalties and logit bias, in place.
//!
//! For each id x: if it occurs in `prompt` or `output`, `l <- l / r` when `l > 0` else `l r`
//! (repetition r), then `l <- l - frequency count_output(x) - presence [count_output(x) > 0]`; then
//! `l <- l + bias` for each listed bias. Neutral values are r = 1 and 0.
//!
//! Roundings: f32 in the order written. Ids of -1 or outside are skipped. A row whose values are all
//! neutral and which lists no bias keeps its bits. NaN stays in its element. Rows see only
//! themselves. Source: engine design, sampling fields.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Penalise`].
    pub struct PenaliseIo {
        /// `[tokens, history]` i32 ids of the prompt, padded with -1.
        prompt: In,
        /// `[tokens, history]` i32 ids generated so far, padded with -1.
        output: In,
        /// `[tokens]` f32, 1 for none.
        repetition: In,
        /// `[tokens]` f32, 0 for none.
        presence: In,
        /// `[tokens]` f32, 0 for none.
        frequency: In,
        /// `[tokens, biases]` i32 ids, padded with -1; absent without `biases`.
        bias_id: In,
        /// `[tokens, biases]` f32; absent without `biases`.
        bias: In,
        /// `[tokens, vocab]` f32, in place.
        logits: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Penalise {
        /// Size of the vocabulary.
        pub vocab: u64,
        /// Biased ids a row, 0 for none.
        pub biases: u64,
    }
}

impl Operator for Penalise {
    const ID: &'static str = "sample.penalise";
    type Io<I, O> = PenaliseIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")
    }
    fn operands(&self) -> PenaliseIo<Operand, Operand> {
        let (t, some) = (Of(Sym::Tokens), self.biases > 0);
        let ids = |dim| Operand::index(&[t, dim], IndexBound::Fixed(self.vocab));
        let number = Operand::new(Enc::F32, &[t]).domain(Domain::Within(4.0));
        PenaliseIo {
            prompt: ids(Of(Sym::History)),
            output: ids(Of(Sym::History)),
            repetition: number.clone(),
            presence: number.clone(),
            frequency: number,
            bias_id: ids(Is(self.biases)).when(some),
            bias: Operand::new(Enc::F32, &[t, Is(self.biases)]).when(some),
            logits: Operand::new(Enc::F32, &[t, Is(self.vocab)]),
        }
    }
}
