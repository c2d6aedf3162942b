//! `spec.markov`: the bias that a drafted token gives its successor's logits,
//! `logits[t] += head · embed[previous[t]]`, in place.
//!
//! Roundings: fp32 (weights promoted; f64 in the reference for the dot and the addition), one to
//! f32. A previous token of -1 or outside adds nothing. NaN stays in its row. Rows see only
//! themselves. Cost: `2 t vocab rank` FLOPs. Source: DSpark 6.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Markov`].
    pub struct MarkovIo {
        /// `[tokens]` i32.
        previous: In,
        /// `[vocab, rank]` bf16.
        embed: In,
        /// `[vocab, rank]` bf16; may be in a private layout.
        head: In,
        /// `[tokens, vocab]` f32, in place.
        logits: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Markov {
        /// Size of the vocabulary.
        pub vocab: u64,
        /// Rank of the bias.
        pub rank: u64,
    }
}

impl Operator for Markov {
    const ID: &'static str = "spec.markov";
    type Io<I, O> = MarkovIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0 && self.rank > 0, "sizes must be positive")
    }
    fn operands(&self) -> MarkovIo<Operand, Operand> {
        let (t, v, r) = (Of(Sym::Tokens), Is(self.vocab), Is(self.rank));
        MarkovIo {
            previous: Operand::index(&[t], IndexBound::Fixed(self.vocab)),
            embed: Operand::new(Enc::BF16, &[v, r]).domain(Domain::Weight(Class::Table)),
            head: Operand::new(Enc::BF16, &[v, r]).domain(Domain::Weight(Class::Dense)),
            logits: Operand::new(Enc::F32, &[t, v]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens);
        let row = self.vocab * 4;
        Cost {
            flops: matmul_flops(t, self.vocab, self.rank),
            read_bytes: t * (row + self.rank * 2) + self.vocab * self.rank * 2,
            written_bytes: t * row,
        }
    }
}
