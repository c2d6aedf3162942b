//! `spec.verify`: how many drafts of a sequence stand, and the token after them.
//!
//! Row i of `p` is the target's distribution at the place of draft i + 1, row i of `q` the law that
//! draft was drawn from; `n = length` drafts were made, `k` are accepted. Rules:
//!
//! * `greedy`: drafts stand while they equal `argmax p_i` (lowest id on ties); then `argmax p_k`.
//! * `standard`: draft d stands iff `u_i q_i(d) < p_i(d)`; at the first failure the token comes from
//!   the normalised `max(p_i - q_i, 0)`, or from `p_i` when that mass is not positive; after n
//!   acceptances from `p_n`. A draft whose `q_i(d)` is not in (0, 1] fails.
//! * `block`: `P_0 = 1`, `P_i = min(P_{i-1} p_{i-1}(d_i) / q_{i-1}(d_i), 1)`;
//!   `h_i = S_i / (S_i + 1 - P_i)` (1 where the denominator is 0) with
//!   `S_i = Σ_x max(P_i p_i(x) - q_i(x), 0)`, `h_n = P_n`; k is the largest i with `u_i < h_i`, 0 if
//!   none (`u_i` is the draw of draft i; strict, so that odds of zero never pass). Then from the
//!   normalised `max(P_k p_k - q_k, 0)`, from `p_k` when that mass is not positive, or from `p_n` when
//!   k = n. A `q(d_i)` that is not in (0, 1] makes `P_i` zero.
//! * `synthetic`: draft i stands iff `u_i < rate`; then from `p_k`. For benchmarks only: it changes
//!   the law of the output.
//!
//! A token "comes from" a distribution by walking the ids upward until the sum exceeds `draw` times
//! the mass; the last id with positive mass is taken if rounding leaves none.
//!
//! All f64 inside. A draft of -1 or outside is no draft: n is its place. Comparisons with NaN fail, and
//! a token that would come from a row with a NaN, or without positive mass, is -1; other sequences are
//! untouched. The independent rows are the sequences.
//! Exact given the draws. Source: DSpark 7.

use crate::ops::prelude::*;

choice! {
    /// When a draft stands.
    pub enum Rule {
        /// Equal to the target's argmax.
        Greedy = "greedy",
        /// Per-token rejection sampling.
        Standard = "standard",
        /// Block verification.
        Block = "block",
        /// At a fixed rate.
        Synthetic = "synthetic",
    }
}

io! {
    /// Operands of [`Verify`].
    pub struct VerifyIo {
        /// `[sequences, block + 1, vocab]` f32.
        p: In,
        /// `[sequences, block, vocab]` f32; absent for `greedy` and `synthetic`.
        q: In,
        /// `[sequences, block]` i32.
        draft: In,
        /// `[sequences]` i32, drafts made.
        length: In,
        /// `[sequences, block]` f32 in [0, 1), acceptance draws.
        uniform: In,
        /// `[sequences]` f32 in [0, 1), the draw of the token after.
        draw: In,
        /// `[sequences]` i32, drafts accepted.
        accepted: Out,
        /// `[sequences]` i32, the token after them.
        token: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Verify {
        /// Size of the vocabulary.
        pub vocab: u64,
        /// Drafts at most.
        pub block: u64,
        /// The rule.
        pub rule: Rule,
        /// Acceptance rate of `synthetic`; 0 otherwise.
        pub rate: Real,
    }
}

impl Operator for Verify {
    const ID: &'static str = "spec.verify";
    const ROWS: Sym = Sym::Sequences;
    type Io<I, O> = VerifyIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.vocab > 0 && self.block > 0, "sizes must be positive")?;
        let rate = (0.0..=1.0).contains(&self.rate.value());
        require(Self::ID, rate, "`rate` is not within 0 and 1")
    }
    fn operands(&self) -> VerifyIo<Operand, Operand> {
        let (s, v, b) = (Of(Sym::Sequences), Is(self.vocab), Is(self.block));
        let laws = |rows| Operand::new(Enc::F32, &[s, Is(rows), v]).domain(Domain::Distribution);
        let uses_q = matches!(self.rule, Rule::Standard | Rule::Block);
        let count = Domain::Count(IndexBound::Fixed(self.block));
        VerifyIo {
            p: laws(self.block + 1),
            q: laws(self.block).when(uses_q),
            draft: Operand::index(&[s, b], IndexBound::Fixed(self.vocab)),
            length: Operand::new(Enc::I32, &[s]).domain(count),
            uniform: Operand::new(Enc::F32, &[s, b]).domain(Domain::Uniform),
            draw: Operand::new(Enc::F32, &[s]).domain(Domain::Uniform),
            accepted: Operand::new(Enc::I32, &[s]),
            token: Operand::new(Enc::I32, &[s]),
        }
    }
}
