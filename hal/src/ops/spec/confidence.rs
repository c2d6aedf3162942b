//! `spec.confidence`: the logit of a draft's survival, `z[t] = w · [hidden[t] | embed[previous[t]]]`.
//!
//! `hidden` is the collapsed state **before** the final norm; `previous` the token drafted before
//! this one. Roundings: fp32 (weights promoted; f64 in the reference), one to f32. A previous token
//! of -1 or outside counts as a row of zeros. NaN stays in its row. Rows see only themselves.
//! Source: DSpark 6.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Confidence`].
    pub struct ConfidenceIo {
        /// `[tokens, width]` bf16.
        hidden: In,
        /// `[tokens]` i32.
        previous: In,
        /// `[vocab, rank]` bf16.
        embed: In,
        /// `[1, width + rank]` bf16.
        weight: In,
        /// `[tokens]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Confidence {
        /// Width of the model.
        pub width: u64,
        /// Size of the vocabulary.
        pub vocab: u64,
        /// Rank of the token embedding.
        pub rank: u64,
    }
}

impl Operator for Confidence {
    const ID: &'static str = "spec.confidence";
    type Io<I, O> = ConfidenceIo<I, O>;
    fn check(&self) -> Result<()> {
        let sizes = [self.width, self.vocab, self.rank];
        require(Self::ID, sizes.iter().all(|n| *n > 0), "sizes must be positive")
    }
    fn operands(&self) -> ConfidenceIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        ConfidenceIo {
            hidden: Operand::new(Enc::BF16, &[t, Is(self.width)]),
            previous: Operand::index(&[t], IndexBound::Fixed(self.vocab)),
            embed: Operand::new(Enc::BF16, &[Is(self.vocab), Is(self.rank)])
                .domain(Domain::Weight(Class::Table)),
            weight: Operand::new(Enc::BF16, &[Is(1), Is(self.width + self.rank)]),
            y: Operand::new(Enc::F32, &[t]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let row = self.width + self.rank;
        let t = at.at(Sym::Tokens);
        Cost {
            flops: matmul_flops(t, 1, row),
            read_bytes: t * (row * 2 + 4) + row * 2,
            written_bytes: t * 4,
        }
    }
}
