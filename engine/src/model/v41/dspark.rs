//! The draft: stages that read what the backbone captured and write a block of tokens at once.
//!
//! A stage is an ordinary block without compression. Its window holds entries made from captured
//! features of committed tokens (the context), and the block's own entries, which all of the
//! block's rows see: there is no causal order inside a block.

use tandem_hal::{
    Cast, CastIo, Confidence, ConfidenceIo, Elem, Embed, EmbedIo, Enc, Lane, Markov, MarkovIo,
    MhcStart, MhcStartIo, Mxfp8Linear, Mxfp8LinearIo, Plan, Real, RmsNormCast, RmsNormCastIo, View,
};

use super::block::{Block, BlockCaches, BlockScratch, BlockShape, BlockWeights, Rows};
use super::caches::Caches;
use super::config::{Config, Dspark};
use super::head::{Head, HeadScratch, HeadWeights};
use super::plans::Plans;
use super::recipe::Recipe;
use crate::error::Result;
use crate::exec::{DraftBatch, Drafted};
use crate::weights::{Loader, Room, Share};

/// Weights of the draft stages. Embedding and head are the backbone's.
pub struct DsparkWeights {
    stages: Vec<BlockWeights>,
    main_proj: View,
    main_norm: View,
    norm: View,
    markov_embed: View,
    markov_head: View,
    confidence: View,
}

impl DsparkWeights {
    /// All stages.
    pub fn load(loader: &mut Loader<'_>, config: &Config, dspark: &Dspark) -> Result<Self> {
        let (hidden, vocab) = (config.hidden_size as u64, config.vocab_size as u64);
        let (rank, last) = (dspark.markov_rank as u64, dspark.stages - 1);
        let targets = dspark.target_layers.len() as u64;
        let mut stages = Vec::with_capacity(dspark.stages);
        for stage in 0..dspark.stages {
            let prefix = format!("mtp.{stage}.");
            let place = (prefix.as_str(), dspark.experts as u64);
            stages.push(BlockWeights::load(loader, config, place, None)?);
        }
        loader
            .module("mtp.heads", |module| {
                let name = |what| format!("mtp.{last}.{what}.weight");
                let elem = Elem::Bf16;
                Ok(Self {
                    stages: Vec::new(),
                    main_proj: module.mxfp8("mtp.0.main_proj", hidden, targets * hidden)?,
                    main_norm: module.plain("mtp.0.main_norm.weight", elem, &[hidden])?,
                    norm: module.plain(&name("norm"), elem, &[hidden])?,
                    markov_embed: module.plain(&name("markov_head.embed"), elem, &[vocab, rank])?,
                    markov_head: module.dense(&name("markov_head.head"), elem, [vocab, rank])?,
                    confidence: module.plain(
                        &name("confidence_head.proj"),
                        elem,
                        &[1, hidden + rank],
                    )?,
                })
            })
            .map(|heads| Self { stages, ..heads })
    }
}

buffers! {
    /// Scratch of context entries.
    pub struct ContextScratch {
        /// `[tokens, targets * hidden]` FP8, the captured features.
        features8,
        /// `[tokens, hidden]` bf16, before its norm.
        main,
        /// `[tokens, hidden]` FP8.
        main8,
        /// `[tokens, head_dim]` bf16, a stage's latent before its norm.
        kv,
    }
}

/// Buffers of the draft, made once.
#[derive(Debug, Clone)]
pub struct DraftScratch {
    /// Of context entries, up to the rows of a step.
    pub context: ContextScratch,
    /// Of the stages, up to the rows of a draft.
    pub block: BlockScratch,
    /// Of the head, likewise.
    pub head: HeadScratch,
}

impl DraftScratch {
    /// Buffers for up to `tokens` context rows and `rows` drafted rows.
    pub fn reserve(
        room: &mut Room<'_>,
        config: &Config,
        (dspark, share): (&Dspark, Share),
        (tokens, rows): (u64, u64),
    ) -> Result<Self> {
        let (hidden, head_dim) = (config.hidden_size as u64, config.attention.head_dim as u64);
        let features = dspark.target_layers.len() as u64 * hidden;
        let experts = (dspark.experts as u64, dspark.experts_per_token as u64);
        Ok(Self {
            context: ContextScratch {
                features8: room.view(Enc::Q8, &[tokens, features])?,
                main: room.view(Enc::BF16, &[tokens, hidden])?,
                main8: room.view(Enc::Q8, &[tokens, hidden])?,
                kv: room.view(Enc::BF16, &[tokens, head_dim])?,
            },
            block: BlockScratch::reserve(room, config, experts, (rows, false))?,
            head: HeadScratch::reserve(room, config, share, rows)?,
        })
    }
}

/// The draft stages.
pub struct Drafter {
    cast: Plan<Cast>,
    main_proj: Plan<Mxfp8Linear>,
    main_norm: Plan<RmsNormCast>,
    embed: Plan<Embed>,
    start: Plan<MhcStart>,
    stages: Vec<Block>,
    head: Head,
    markov: Plan<Markov>,
    confidence: Plan<Confidence>,
    /// Caches of the stages come after those of this many layers.
    layers: usize,
    embedding: View,
    w: DsparkWeights,
}

/// What the draft shares with the backbone.
pub struct Shared {
    /// `[vocab, hidden]` bf16.
    pub embedding: View,
    /// The output matrix.
    pub head: HeadWeights,
    /// The rank's part of the weights.
    pub share: Share,
}

impl Drafter {
    /// Plans for a configuration.
    pub fn plan(
        plans: &mut Plans<'_>,
        (config, dspark): (&Config, &Dspark),
        recipe: &Recipe,
        shared: Shared,
        mut w: DsparkWeights,
    ) -> Result<Self> {
        let (width, streams) = (config.hidden_size as u64, config.hyper.streams as u64);
        let (vocab, rank) = (config.vocab_size as u64, dspark.markov_rank as u64);
        let features = dspark.target_layers.len() as u64 * width;
        let eps = Real::new(config.norm_eps);
        let shape = BlockShape {
            config,
            recipe,
            share: shared.share,
            ratio: 0,
            window: (config.attention.window_tokens + dspark.block_size) as u64,
            experts: dspark.experts as u64,
            experts_per_token: dspark.experts_per_token as u64,
            pictures: false,
        };
        let stages = std::mem::take(&mut w.stages).into_iter();
        Ok(Self {
            cast: plans.plan(Cast { to: Enc::Q8, width: features })?,
            main_proj: plans.plan(Mxfp8Linear { n: width, k: features })?,
            main_norm: plans.plan(RmsNormCast { width, eps })?,
            embed: plans.plan(Embed { vocab, width })?,
            start: plans.plan(MhcStart { streams, width })?,
            stages: stages
                .map(|stage| Block::plan(plans, &shape, (None, 0), stage))
                .collect::<Result<_>>()?,
            head: Head::plan(plans, config, shared.share, w.norm.clone(), shared.head)?,
            markov: plans.plan(Markov { vocab, rank })?,
            confidence: plans.plan(Confidence { width, vocab, rank })?,
            layers: config.layers,
            embedding: shared.embedding,
            w,
        })
    }

    /// Context entries of every stage from captured `features` `[tokens, targets * hidden]`; rows
    /// whose address in `window_store` is -1 leave none.
    pub fn context(
        &self,
        on: Lane<'_>,
        features: &View,
        (position, window_store): (&View, &View),
        caches: &Caches,
        t: &DraftScratch,
    ) -> Result<()> {
        let (w, t) = (&self.w, t.context.rows(features.shape()[0])?);
        on.run(&self.cast, CastIo { x: features, y: &t.features8 })?;
        let io = Mxfp8LinearIo { x: &t.features8, weight: &w.main_proj, y: &t.main };
        on.run(&self.main_proj, io)?;
        let io = RmsNormCastIo { x: &t.main, weight: &w.main_norm, y: &t.main8 };
        on.run(&self.main_norm, io)?;
        for (stage, window) in self.stages.iter().zip(&caches.windows[self.layers..]) {
            let at = (position, window_store);
            stage.attention().store_window(on, &t.main8, at, &t.kv, window)?;
        }
        Ok(())
    }

    /// A block for every sequence: what its rows would say if no token before them were known.
    pub fn forward(
        &self,
        on: Lane<'_>,
        batch: &DraftBatch,
        caches: &Caches,
        t: &DraftScratch,
    ) -> Result<Drafted> {
        let (block, head) = (t.block.rows(batch.tokens)?, t.head.rows(batch.tokens)?);
        let flow = &block.flow;
        let (id, table) = (&batch.id, &self.embedding);
        on.run(&self.embed, EmbedIo { id, table, y: &flow.x })?;
        let (streams, pre) = (&flow.streams, &flow.pre);
        on.run(&self.start, MhcStartIo { x: &flow.x, streams, pre })?;
        let rows = Rows {
            position: &batch.position,
            window_at: &batch.window_at,
            window_store: &batch.window_store,
            picture: None,
            compressed: None,
        };
        for (stage, window) in self.stages.iter().zip(&caches.windows[self.layers..]) {
            stage.forward(on, &rows, &BlockCaches { window, source: None }, &block, false)?;
        }
        self.head.forward(on, streams, pre, &head)?;
        Ok(Drafted { hidden: head.hidden, logits: head.logits })
    }

    /// Adds to `logits` `[rows, vocab]` the bias of the tokens before, `previous` `[rows]` i32.
    pub fn bias(&self, on: Lane<'_>, previous: &View, logits: &View) -> Result<()> {
        let (embed, head) = (&self.w.markov_embed, &self.w.markov_head);
        Ok(on.run(&self.markov, MarkovIo { previous, embed, head, logits })?)
    }

    /// Logits `[rows]` f32 of the survival of the tokens drafted from `hidden` `[rows, hidden]`
    /// after `previous` `[rows]` i32.
    pub fn confidence(&self, on: Lane<'_>, hidden: &View, previous: &View, y: &View) -> Result<()> {
        let (embed, weight) = (&self.w.markov_embed, &self.w.confidence);
        Ok(on.run(&self.confidence, ConfidenceIo { hidden, previous, embed, weight, y })?)
    }
}
