//! `index.select`: scores and selection in one pass, so that scores need not be stored.
//!
//! Fused: same bits as [`crate::Scores`], then [`crate::Candidates`] when it publishes, then
//! [`crate::TopK`]. With candidate blocks given, only their entries need scoring. The publishing
//! layer's own pick is not restricted to what it publishes. Source: model report 3.7, 3.8.

use crate::ops::prelude::*;
use crate::{Blocks, Candidates, CandidatesIo, Scores, ScoresIo, TopK, TopKIo};

io! {
    /// Operands of [`Select`].
    pub struct SelectIo {
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
        /// `[tokens, blocks]` i32 candidate blocks; absent unless `top_k` is restricted.
        blocks: In,
        /// `[1, entries]` bytes: says how many entries the longest sequence has; never read.
        entries: In,
        /// `[tokens, blocks]` i32 blocks for later layers; absent unless `publish`.
        published: Out,
        /// `[tokens, k]` i32 entries, ascending, padded with -1.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Select {
        /// How entries are scored.
        pub scores: Scores,
        /// How many are taken, among which.
        pub top_k: TopK,
        /// Blocks to publish, if any.
        pub publish: Option<Blocks>,
    }
}

impl Operator for Select {
    const ID: &'static str = "index.select";
    type Io<I, O> = SelectIo<I, O>;
    fn check(&self) -> Result<()> {
        self.scores.check()?;
        self.top_k.check()?;
        self.publish.as_ref().map_or(Ok(()), |b| b.check(Self::ID))
    }
    fn operands(&self) -> SelectIo<Operand, Operand> {
        let (scores, top_k) = (self.scores.operands(), self.top_k.operands());
        let none = || Operand::new(Enc::I32, &[Of(Sym::Tokens)]).when(false);
        SelectIo {
            q: scores.q,
            weight: scores.weight,
            keys: scores.keys,
            sequence: scores.sequence,
            table: scores.table,
            visible: scores.visible,
            blocks: top_k.blocks,
            entries: Operand::new(Enc::U8, &[Is(1), Of(Sym::Entries)]).domain(Domain::Bytes),
            published: self.publish.as_ref().map_or_else(none, Blocks::operand),
            y: top_k.y,
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        // Restricted to blocks, each row reads the keys of its own.
        let scores = match &self.top_k.blocks {
            None => self.scores.cost(at),
            Some(blocks) => {
                let entries = at.at(Sym::Entries).min(blocks.count * blocks.size);
                let rows = at.at(Sym::Tokens);
                self.scores.cost(&at.with(Sym::Entries, entries).with(Sym::Sequences, rows))
            }
        };
        let written_bytes = at.at(Sym::Tokens) * self.top_k.k * 4;
        Cost { written_bytes, ..scores }
    }
    fn decompose(&self, io: SelectIo<Ref, Ref>, to: &mut Steps) {
        let y = to.temp(Enc::F32, &[Of(Sym::Tokens), Of(Sym::Entries)]);
        let (sequence, table, visible) = (io.sequence, io.table, io.visible);
        let (q, weight, keys) = (io.q, io.weight, io.keys);
        to.step(self.scores.clone(), ScoresIo { q, weight, keys, sequence, table, visible, y });
        if let Some(blocks) = self.publish.clone() {
            to.step(Candidates { blocks }, CandidatesIo { scores: y, visible, y: io.published });
        }
        let blocks = io.blocks;
        to.step(self.top_k.clone(), TopKIo { scores: y, visible, blocks, y: io.y });
    }
}
