//! `index.candidates`: the coarse stage, the best blocks of each row.
//!
//! Block `b` covers entries `b size .. b size + size - 1`; its score is the largest score of its
//! visible entries. The block with the newest visible entry is always kept. Of the others the best
//! are kept, up to `count` blocks in all, never one whose score is `-inf`; ties go to the lower
//! block. Written ascending, padded with -1. A row that sees nothing keeps nothing.
//!
//! NaN entries are passed over; a block of NaN only scores `-inf`. No rounding: exact. Rows see
//! only themselves. Published by one layer for the index sources above it. Source: model report 3.8.

use crate::ops::prelude::*;
use crate::{Blocks, Scores};

io! {
    /// Operands of [`Candidates`].
    pub struct CandidatesIo {
        /// `[tokens, entries]` f32.
        scores: In,
        /// `[tokens]` i32, entries each row may see.
        visible: In,
        /// `[tokens, blocks]` i32, ascending, padded with -1.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Candidates {
        /// What is kept.
        pub blocks: Blocks,
    }
}

impl Operator for Candidates {
    const ID: &'static str = "index.candidates";
    type Io<I, O> = CandidatesIo<I, O>;
    fn check(&self) -> Result<()> {
        self.blocks.check(Self::ID)
    }
    fn operands(&self) -> CandidatesIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        CandidatesIo {
            scores: Operand::new(Enc::F32, &[t, Of(Sym::Entries)]),
            visible: Scores::visible(),
            y: self.blocks.operand(),
        }
    }
}
