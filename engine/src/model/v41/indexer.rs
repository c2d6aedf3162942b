//! The indexer of a layer that selects: queries scored against index keys, the best entries taken.
//!
//! The layers above reuse the selection, entries and addresses alike, until the next one selects.
//! Ranks hold the indexer whole, so all of them select the same.

use tandem_hal::{
    Bf16Linear, Bf16LinearIo, Blocks, Cast, CastIo, Elem, Enc, Lane, Locate, LocateIo, Mxfp8Linear,
    Mxfp8LinearIo, Plan, Real, Rotate, RotateIo, Scores, Select, SelectIo, Sym, TopK, View,
};

use super::block::{BlockShape, Compressed};
use super::config::Config;
use super::plans::Plans;
use super::topology::Candidates;
use crate::error::Result;
use crate::plan::score::ScorePieces;
use crate::weights::{Module, Room};

/// Weights of an indexer's query side.
pub struct IndexerWeights {
    wq_b: View,
    weights_proj: View,
}

impl IndexerWeights {
    /// Those of the layer at `prefix`.
    pub fn load(module: &mut Module<'_, '_>, config: &Config, prefix: &str) -> Result<Self> {
        let (hidden, index) = (config.hidden_size as u64, &config.indexer);
        let (heads, head_dim) = (index.heads as u64, index.head_dim as u64);
        let rank = config.attention.q_lora_rank as u64;
        let name = |what| format!("{prefix}attn.indexer.{what}");
        let proj = name("weights_proj.weight");
        Ok(Self {
            wq_b: module.mxfp8(&name("wq_b"), heads * head_dim, rank)?,
            weights_proj: module.dense(&proj, Elem::Bf16, [heads, hidden])?,
        })
    }
}

buffers! {
    /// Scratch of an indexer.
    pub struct IndexScratch {
        /// `[tokens, heads * head_dim]` bf16 queries.
        q,
        /// The same in MXFP4.
        q4,
        /// `[tokens, heads]` bf16 head weights, unscaled.
        weight,
    }
}

impl IndexScratch {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, tokens: u64) -> Result<Self> {
        let (heads, head_dim) = (config.indexer.heads as u64, config.indexer.head_dim as u64);
        Ok(Self {
            q: room.view(Enc::BF16, &[tokens, heads * head_dim])?,
            q4: room.view(Enc::MXFP4, &[tokens, heads * head_dim])?,
            weight: room.view(Enc::BF16, &[tokens, heads])?,
        })
    }
}

buffers! {
    /// What an indexer hands to its own layer and to the layers above.
    pub struct Selection {
        /// `[tokens, top k]` i32 entries, ascending, -1 for none.
        entries,
        /// `[tokens, top k]` i32 their addresses.
        at,
        /// `[tokens, blocks]` i32 candidate blocks, ascending, -1 for none.
        blocks,
    }
}

impl Selection {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, tokens: u64) -> Result<Self> {
        let top_k = config.indexer.topk as u64;
        // A model without candidates has no use for the list, but a shape for it all the same.
        let blocks = candidate_blocks(config).map_or(1, |blocks| blocks.count);
        Ok(Self {
            entries: room.view(Enc::I32, &[tokens, top_k])?,
            at: room.view(Enc::I32, &[tokens, top_k])?,
            blocks: room.view(Enc::I32, &[tokens, blocks])?,
        })
    }
}

fn candidate_blocks(config: &Config) -> Option<Blocks> {
    let c = &config.compression;
    c.candidate_source?;
    Some(Blocks { count: c.candidate_blocks as u64, size: c.candidate_block_entries as u64 })
}

/// The indexer of one layer.
pub struct Indexer {
    wq_b: Plan<Mxfp8Linear>,
    rotate: Plan<Rotate>,
    cast: Plan<Cast>,
    weights_proj: Plan<Bf16Linear>,
    select: Plan<Select>,
    locate: Plan<Locate>,
    /// Rows whose scores fit the budget at once.
    piece_rows: u64,
    w: IndexerWeights,
}

impl Indexer {
    /// Plans for a layer. No piece's scores take more than `score_budget_bytes`.
    ///
    /// # Errors
    /// A budget below one row of scores, or what planning answers.
    pub fn plan(
        plans: &mut Plans<'_>,
        shape: &BlockShape<'_>,
        (candidates, score_budget_bytes): (Candidates, u64),
        w: IndexerWeights,
    ) -> Result<Self> {
        let (config, ratio) = (shape.config, shape.ratio);
        let (hidden, rank) = (config.hidden_size as u64, config.attention.q_lora_rank as u64);
        let (heads, head_dim) = (config.indexer.heads as u64, config.indexer.head_dim as u64);
        let blocks = candidate_blocks(config);
        let keys = shape.recipe.formats.key(ratio);
        let (page_entries, pages, k) = (keys.page_entries, keys.pages, config.indexer.topk as u64);
        let scale = (head_dim as f32).powf(-0.5) * (heads as f32).powf(-0.5);
        let limits = plans.limits();
        let (tokens, entries) = (limits.at(Sym::Tokens), limits.at(Sym::Entries));
        let pieces = ScorePieces::new(tokens, entries, score_budget_bytes)?;
        let select = Select {
            scores: Scores { heads, head_dim, keys, scale: Real::new(scale) },
            top_k: TopK {
                k,
                blocks: blocks.clone().filter(|_| candidates == Candidates::Restricted),
            },
            publish: blocks.filter(|_| candidates == Candidates::Publishes),
        };
        let rotate = Rotate { heads, ..config.rotation(ratio, head_dim) };
        let piece_limits = limits.with(Sym::Tokens, pieces.rows_per_piece);
        Ok(Self {
            wq_b: plans.plan(Mxfp8Linear { n: heads * head_dim, k: rank })?,
            rotate: plans.plan(rotate)?,
            cast: plans.plan(Cast { to: Enc::MXFP4, width: heads * head_dim })?,
            weights_proj: plans.plan(Bf16Linear { n: heads, k: hidden, bias: false })?,
            select: plans.plan_within(select, piece_limits)?,
            locate: plans.plan(Locate { count: k, page_entries, pages })?,
            piece_rows: pieces.rows_per_piece.max(1),
            w,
        })
    }

    /// Queries and weights of rows with normed inputs `x` and low-rank queries `qr8`.
    pub fn query(
        &self,
        on: Lane<'_>,
        (x, qr8): (&View, &View),
        position: &View,
        t: &IndexScratch,
    ) -> Result<()> {
        let w = &self.w;
        on.run(&self.wq_b, Mxfp8LinearIo { x: qr8, weight: &w.wq_b, y: &t.q })?;
        let Rotate { heads, head_dim, .. } = *self.rotate.descriptor();
        let q = if heads == 1 { t.q.clone() } else { t.q.split_last(heads, head_dim)? };
        on.run(&self.rotate, RotateIo { x: &q, position })?;
        on.run(&self.cast, CastIo { x: &t.q, y: &t.q4 })?;
        let none = View::absent(Enc::BF16);
        let io = Bf16LinearIo { x, weight: &w.weights_proj, bias: &none, y: &t.weight };
        Ok(on.run(&self.weights_proj, io)?)
    }

    /// The selection of rows whose [`Indexer::query`] has run.
    pub fn forward(
        &self,
        on: Lane<'_>,
        rows: &Compressed<'_>,
        keys: &View,
        t: &IndexScratch,
        selection: &Selection,
    ) -> Result<()> {
        self.select(on, rows, keys, t, selection)?;
        let (entry, y) = (&selection.entries, &selection.at);
        let (sequence, table) = (rows.sequence, rows.table);
        Ok(on.run(&self.locate, LocateIo { entry, sequence, table, y })?)
    }

    /// Scores and picks, piece by piece: rows see only themselves, so cuts change nothing.
    fn select(
        &self,
        on: Lane<'_>,
        rows: &Compressed<'_>,
        keys: &View,
        t: &IndexScratch,
        selection: &Selection,
    ) -> Result<()> {
        let descriptor = self.select.descriptor();
        let none = View::absent(Enc::I32);
        let tokens = t.q4.shape()[0];
        for start in (0..tokens).step_by(self.piece_rows as usize) {
            let piece = |view: &View| view.rows(start..(start + self.piece_rows).min(tokens));
            let blocks = piece(&selection.blocks)?;
            on.run(
                &self.select,
                SelectIo {
                    q: &piece(&t.q4)?,
                    weight: &piece(&t.weight)?,
                    keys,
                    sequence: &piece(rows.sequence)?,
                    table: rows.table,
                    visible: &piece(rows.visible)?,
                    blocks: if descriptor.top_k.blocks.is_some() { &blocks } else { &none },
                    entries: rows.entries,
                    published: if descriptor.publish.is_some() { &blocks } else { &none },
                    y: &piece(&selection.entries)?,
                },
            )?;
        }
        Ok(())
    }
}
