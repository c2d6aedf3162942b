//! `index.top_k`: the `k` best visible entries of each row, as ascending entry numbers.
//!
//! Considered are entries `j < visible[t]` and, with `blocks`, only those inside a listed block.
//! Taken are the `min(k, considered)` with the highest score; ties go to the lower entry. The
//! result is a set, written in ascending order and padded with -1.
//!
//! NaN scores rank below every number, `-inf` included, and are still taken when there is room:
//! attention then shows the NaN instead of hiding it. Visible entries that score `-inf` count.
//! `visible` is lowered to the entries axis. No rounding: exact. Rows see only themselves.
//! Cost: bytes. Source: model report 3.7, 3.8.

use crate::Scores;
use crate::ops::prelude::*;

io! {
    /// Operands of [`TopK`].
    pub struct TopKIo {
        /// `[tokens, entries]` f32.
        scores: In,
        /// `[tokens]` i32, entries each row may see.
        visible: In,
        /// `[tokens, blocks]` i32 candidate blocks; absent without `blocks`.
        blocks: In,
        /// `[tokens, k]` i32, ascending, padded with -1.
        y: Out,
    }
}

descriptor! {
    /// The coarse stage: how many blocks are kept, and how many entries a block has.
    pub struct Blocks {
        /// Blocks kept a row.
        pub count: u64,
        /// Entries of a block.
        pub size: u64,
    }
}

impl Blocks {
    /// Lists of blocks, `[tokens, count]` i32.
    pub fn operand(&self) -> Operand {
        let below = IndexBound::Rows(Sym::Entries, 1);
        Operand::index(&[Of(Sym::Tokens), Is(self.count)], below)
    }
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        require(op, self.count > 0 && self.size > 0, "blocks must have a count and a size")
    }
}

descriptor! {
    /// See the [page](self).
    pub struct TopK {
        /// Entries taken a row.
        pub k: u64,
        /// Restriction to candidate blocks, if any.
        pub blocks: Option<Blocks>,
    }
}

impl Operator for TopK {
    const ID: &'static str = "index.top_k";
    type Io<I, O> = TopKIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.k > 0, "`k` must be positive")?;
        self.blocks.as_ref().map_or(Ok(()), |b| b.check(Self::ID))
    }
    fn operands(&self) -> TopKIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        let none = || Operand::new(Enc::I32, &[t]).when(false);
        TopKIo {
            scores: Operand::new(Enc::F32, &[t, Of(Sym::Entries)]),
            visible: Scores::visible(),
            blocks: self.blocks.as_ref().map_or_else(none, Blocks::operand),
            y: Operand::new(Enc::I32, &[t, Is(self.k)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let entries = at.at(Sym::Entries);
        let considered = self.blocks.as_ref().map_or(entries, |b| entries.min(b.count * b.size));
        Cost::of(self, &at.with(Sym::Entries, considered), 0.0)
    }
}
