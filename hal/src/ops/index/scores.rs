//! `index.scores`: how well each visible entry fits a row,
//! `y[t,j] = Σ_h w[t,h] max(0, q[t,h] · k_j)` for `j < visible[t]`, `-inf` above.
//!
//! `w = bf(weight x scale)`: the raw head weights are scaled and rounded to bf16 first. `k_j` is the
//! entry `j` of the row's sequence, found through its page table. Weights may be negative.
//!
//! Roundings: queries and keys are 4-bit with power-of-two scales, so dots are exact in fp32 unless
//! scales are far apart; dots are rounded to f32, the sum over heads runs in head order (f64 in the
//! reference), one rounding to f32. NaN in a row of `q` or `w` stays in that row; a NaN key gives
//! NaN at its entry. ReLU is per head, before the weights; NaN passes it.
//! An entry without a page (table -1, past the table, sequence outside) scores `-inf`; `visible` is
//! lowered to the entries axis. Rows see only themselves.
//! Cost: `2 t heads head_dim entries` FLOPs, keys once per sequence. Source: model report 3.7; fp32
//! instead of the published bf16 tensors (disagreement D12).

use crate::Cache;
use crate::ops::kv::locate::{sequence_operand, table_operand};
use crate::ops::prelude::*;

io! {
    /// Operands of [`Scores`].
    pub struct ScoresIo {
        /// `[tokens, heads head_dim]` MXFP4.
        q: In,
        /// `[tokens, heads]` bf16, raw head weights.
        weight: In,
        /// `[pages, page_entries]` records: index keys.
        keys: In,
        /// `[tokens]` i32, each row's sequence.
        sequence: In,
        /// `[sequences, table_pages]` i32 pages.
        table: In,
        /// `[tokens]` i32, entries each row may see.
        visible: In,
        /// `[tokens, entries]` f32.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Scores {
        /// Query heads.
        pub heads: u64,
        /// Dims of a head, a multiple of 32.
        pub head_dim: u64,
        /// Cache of the keys.
        pub keys: Cache,
        /// Factor of the head weights.
        pub scale: Real,
    }
}

impl Scores {
    /// `[tokens]` counts of visible entries.
    pub(crate) fn visible() -> Operand {
        let bound = IndexBound::Rows(Sym::Entries, 1);
        Operand::new(Enc::I32, &[Of(Sym::Tokens)]).domain(Domain::Count(bound))
    }
}

impl Operator for Scores {
    const ID: &'static str = "index.scores";
    type Io<I, O> = ScoresIo<I, O>;
    fn check(&self) -> Result<()> {
        self.keys.check(Self::ID)?;
        require(Self::ID, self.heads > 0, "`heads` must be positive")?;
        require(Self::ID, self.keys.width() == self.head_dim, "keys are not `head_dim` wide")?;
        require(Self::ID, self.head_dim.is_multiple_of(32), "`head_dim` is not a multiple of 32")
    }
    fn operands(&self) -> ScoresIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        ScoresIo {
            q: Operand::new(Enc::MXFP4, &[t, Is(self.heads * self.head_dim)]),
            weight: Operand::new(Enc::BF16, &[t, Is(self.heads)]),
            keys: self.keys.operand(),
            sequence: sequence_operand(),
            table: table_operand(),
            visible: Scores::visible(),
            y: Operand::new(Enc::F32, &[t, Of(Sym::Entries)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let (t, entries) = (at.at(Sym::Tokens), at.at(Sym::Entries));
        let row = self.heads * self.head_dim * 17 / 32 + self.heads * 2 + 8;
        let keys = at.at(Sym::Sequences) * entries * self.keys.record.bytes();
        Cost {
            flops: matmul_flops(t, entries, self.heads * self.head_dim),
            read_bytes: t * row + keys,
            written_bytes: t * entries * 4,
        }
    }
}
