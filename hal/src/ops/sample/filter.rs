//! `sample.filter`: logits to the distribution that is sampled from.
//!
//! `temperature <= 1e-5` is greedy: 1 at the largest logit (lowest id on ties), 0 elsewhere. Else
//! `p = softmax(logits / temperature)`; then ids are kept that pass all of: `top_k` (among the k
//! largest, ties to the lower id; values below 1 or at least the vocabulary: no limit), `top_p` (ids
//! in order of falling logits, ties to the lower id, until their sum reaches `top_p - 1e-6`, the id
//! that reaches it included; 1 or more: no limit; at least one id stays), `min_p` (`p >= min_p max p`;
//! 0 or less: no limit; above 1 counts as 1). `top_p` sums over what `top_k` left, before renormalising; `min_p` compares with the
//! largest p. Kept ids are renormalised, the others are 0. The slack makes a sum that is `top_p` but
//! for rounding reach it: 0.5 and 0.3 reach 0.8, whose f32 is a little more.
//!
//! Roundings: f64 inside, one to f32. A logit of -inf has p = 0 and is never kept unless all are
//! -inf, which gives 1 at id 0. +inf counts as the largest logit: equal shares among them. A NaN
//! logit or temperature makes its whole row NaN, which draws refuse. Rows see only themselves. Exact in its choice
//! given equal inputs. Source: engine design, sampling fields.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Filter`].
    pub struct FilterIo {
        /// `[tokens, vocab]` f32.
        logits: In,
        /// `[tokens]` f32, not negative.
        temperature: In,
        /// `[tokens]` i32.
        top_k: In,
        /// `[tokens]` f32.
        top_p: In,
        /// `[tokens]` f32.
        min_p: In,
        /// `[tokens, vocab]` f32 with sum 1.
        p: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Filter {
        /// Size of the vocabulary.
        pub vocab: u64,
    }
}

impl Operator for Filter {
    const ID: &'static str = "sample.filter";
    type Io<I, O> = FilterIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0, "`vocab` must be positive")
    }
    fn operands(&self) -> FilterIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        let row = Operand::new(Enc::F32, &[t, Is(self.vocab)]);
        let share = Operand::new(Enc::F32, &[t]).domain(Domain::Uniform);
        FilterIo {
            logits: row.clone(),
            temperature: share.clone(),
            top_k: Operand::new(Enc::I32, &[t])
                .domain(Domain::Count(IndexBound::Fixed(self.vocab))),
            top_p: share.clone(),
            min_p: share,
            p: row,
        }
    }
}
