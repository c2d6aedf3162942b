//! The whole model: embedding, layers, head, and the draft beside them.

use tandem_hal::{
    Device, Elem, Embed, EmbedIo, Enc, Extents, Fingerprint, GatherRows, GatherRowsIo, Lane,
    MhcStart, MhcStartIo, PlaceRows, PlaceRowsIo, Plan, Sym, View,
};

use super::block::{Block, BlockShape};
use super::caches::{Caches, Pools};
use super::config::Config;
use super::dspark::{DraftScratch, Drafter, Shared};
use super::engram::Engram;
use super::head::{Head, HeadScratch};
use super::lanes::Lanes;
use super::layer::{Layer, LayerScratch};
use super::plans::{Kernels, Needs, Plans};
use super::recipe::Recipe;
use super::weights::ModelWeights;
use crate::error::{Error, Result};
use crate::exec::{Batch, PictureRows, UpperRows};
use crate::kv::PAGE_TOKENS;
use crate::weights::Room;

/// The largest step that a model is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rows of a step.
    pub tokens: u64,
    /// Rows whose logits are wanted.
    pub outputs: u64,
    /// Sequences of a step.
    pub sequences: u64,
    /// Pages a sequence's table can name.
    pub table_pages: u64,
    /// Pages of the caches.
    pub pools: Pools,
    /// Rows of all pictures in flight.
    pub cells: u64,
    /// Bytes for the indexer's scores.
    pub score_budget_bytes: u64,
}

impl Limits {
    fn extents(&self) -> Extents {
        Extents::of(&[
            (Sym::Tokens, self.tokens),
            (Sym::Outputs, self.outputs),
            (Sym::Sequences, self.sequences),
            (Sym::Pages, self.pools.pages),
            (Sym::WindowPages, self.pools.window_pages),
            (Sym::OpenPages, self.pools.open_pages),
            (Sym::TablePages, self.table_pages),
            // The finest compressed cache has an entry per token.
            (Sym::Entries, self.table_pages * PAGE_TOKENS),
            (Sym::Cells, self.cells),
        ])
    }

    /// Rows of a draft for every sequence.
    fn draft_rows(&self, config: &Config) -> u64 {
        config.dspark.as_ref().map_or(0, |dspark| self.sequences * dspark.block_size as u64)
    }
}

/// Every buffer that a step works in, reserved once.
#[derive(Debug, Clone)]
pub struct Scratch {
    /// Of the layers.
    pub layers: LayerScratch,
    /// `[outputs, streams * hidden]` bf16, rows taken for the head.
    pub output_streams: View,
    /// `[outputs, streams]` f32, their mixes.
    pub output_pre: View,
    /// Of the head.
    pub head: HeadScratch,
    /// Of the draft, if there is one.
    pub draft: Option<DraftScratch>,
}

/// What a step computed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `[rows, targets * hidden]` bf16, what the draft's context is made of: of the upper rows where
    /// the step has them, else of all rows. `None` without draft stages.
    pub features: Option<View>,
    /// `[outputs, vocab]` f32.
    pub logits: View,
}

/// A planned model: its weights, and a kernel chosen for every step of it.
pub struct Model {
    config: Config,
    recipe: Recipe,
    limits: Limits,
    embed: Plan<Embed>,
    place: Plan<PlaceRows>,
    start: Plan<MhcStart>,
    layers: Vec<Layer>,
    gather_streams: Plan<GatherRows>,
    gather_pre: Plan<GatherRows>,
    head: Head,
    drafter: Option<Drafter>,
    embedding: View,
    share: crate::weights::Share,
    fingerprint: Fingerprint,
    needs: Needs,
    kernels: Kernels,
}

impl Model {
    /// Plans every launch up to `limits`. Nothing after it allocates.
    ///
    /// # Errors
    /// [`Error::Device`] naming the operator that the device has no kernel for, or
    /// [`Error::Argument`] for a score budget below one row.
    pub fn plan(
        device: &dyn Device,
        config: &Config,
        recipe: &Recipe,
        limits: Limits,
        weights: ModelWeights,
    ) -> Result<Self> {
        let mut plans = Plans::new(device, limits.extents());
        let (vocab, width) = (config.vocab_size as u64, config.hidden_size as u64);
        let (streams, share) = (config.hyper.streams as u64, weights.share);
        let shared =
            Shared { embedding: weights.embedding.clone(), head: weights.head.clone(), share };
        let embed = plans.plan(Embed { vocab, width })?;
        let place = plans.plan(PlaceRows { width })?;
        let start = plans.plan(MhcStart { streams, width })?;
        let (norm, head, embedding) =
            (weights.norm.clone(), weights.head.clone(), weights.embedding.clone());
        let (layers, dspark) = plan_layers(&mut plans, (config, recipe), limits, weights)?;
        // The upper rows and the output rows are both taken by these.
        let mut extents = limits.extents();
        extents.set(Sym::Outputs, limits.tokens.max(limits.outputs));
        plans.limit(extents);
        let gather = |elem, width| GatherRows { elem, width };
        let gather_streams = plans.plan(gather(Elem::Bf16, streams * width))?;
        let gather_pre = plans.plan(gather(Elem::F32, streams))?;
        plans.limit(extents.with(Sym::Tokens, limits.outputs));
        let head = Head::plan(&mut plans, config, share, norm, head)?;
        plans.limit(extents.with(Sym::Tokens, limits.tokens.max(limits.draft_rows(config))));
        let drafter = match (dspark, &config.dspark) {
            (Some(w), Some(dspark)) => {
                Some(Drafter::plan(&mut plans, (config, dspark), recipe, shared, w)?)
            }
            _ => None,
        };
        let (fingerprint, needs, kernels) = plans.finish();
        Ok(Self {
            config: config.clone(),
            recipe: recipe.clone(),
            limits,
            embed,
            place,
            start,
            layers,
            gather_streams,
            gather_pre,
            head,
            drafter,
            embedding,
            share,
            fingerprint,
            needs,
            kernels,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What every plan computes: equal fingerprints, equal bytes.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The rows that run its operators at its limits and at the powers of two below them.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// A layer.
    pub fn layer(&self, index: usize) -> &Layer {
        &self.layers[index]
    }

    /// The draft stages, if they were loaded.
    pub fn drafter(&self) -> Option<&Drafter> {
        self.drafter.as_ref()
    }

    /// The first layer that needs to run on trailing rows only: the owner of the last compressed
    /// cache. `None` where no layer compresses, or where the draft captures below it.
    pub fn split(&self) -> Option<usize> {
        let split = *self.config.compression.kv_sources.last()?;
        let targets = self.config.dspark.as_ref().map_or(&[][..], |dspark| &dspark.target_layers);
        targets.iter().all(|target| *target >= split).then_some(split)
    }

    /// The buffers of a step, in reservations of their own.
    ///
    /// # Errors
    /// [`Error::Device`] when memory runs out.
    pub fn scratch(&self, device: &dyn Device) -> Result<Scratch> {
        let (config, limits) = (&self.config, self.limits);
        let (streams, hidden) = (config.hyper.streams as u64, config.hidden_size as u64);
        let shape = backbone_shape((config, &self.recipe), self.share, 0);
        let layers = Room::reserve(device, "scratch.layers", |room| {
            LayerScratch::reserve(room, &shape, limits.tokens)
        })?;
        let (output_streams, output_pre, head) = Room::reserve(device, "scratch.head", |room| {
            let outputs = limits.outputs;
            Ok((
                room.view(Enc::BF16, &[outputs, streams * hidden])?,
                room.view(Enc::F32, &[outputs, streams])?,
                HeadScratch::reserve(room, config, self.share, outputs)?,
            ))
        })?;
        let draft = config.dspark.as_ref().filter(|_| self.drafter.is_some());
        let rows = (limits.tokens, limits.draft_rows(config));
        let draft = draft.map(|dspark| {
            Room::reserve(device, "scratch.draft", |room| {
                DraftScratch::reserve(room, config, (dspark, self.share), rows)
            })
        });
        Ok(Scratch { layers, output_streams, output_pre, head, draft: draft.transpose()? })
    }

    /// What launches of this model go through.
    ///
    /// # Errors
    /// As [`Lanes::new`].
    pub fn lanes(&self, device: &dyn Device) -> Result<Lanes> {
        Lanes::new(device, self.needs)
    }

    /// One step. With upper rows, layers from [`Model::split`] on run on those rows only.
    ///
    /// # Errors
    /// [`Error::Device`], or [`Error::Internal`] for upper rows of a model that has no split.
    pub fn forward(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        caches: &Caches,
        scratch: &Scratch,
    ) -> Result<Outcome> {
        let t = scratch.layers.rows(batch.tokens)?;
        self.start(on, batch, &t)?;
        let Some(upper) = &batch.upper else {
            for layer in &self.layers {
                layer.forward(on, batch, caches, &t)?;
            }
            return self.finish(on, batch, t, scratch);
        };
        let missing = || Error::Internal { invariant: "upper rows go with a split".to_owned() };
        let split = self.split().ok_or_else(missing)?;
        for layer in &self.layers[..split] {
            layer.forward(on, batch, caches, &t)?;
        }
        self.layers[split].publish(on, batch, caches, &t)?;
        let t = self.trail(on, upper, &t)?;
        if upper.rows.tokens > 0 {
            self.layers[split].resume(on, &upper.rows, caches, &t)?;
            for layer in &self.layers[split + 1..] {
                layer.forward(on, &upper.rows, caches, &t)?;
            }
        }
        self.finish(on, &upper.rows, t, scratch)
    }

    /// One step through all layers, then the final normed hidden state of every row: `take` gets
    /// `[rows, hidden]` bf16 of as many neighbouring rows at a time as a step has outputs. No
    /// logits.
    ///
    /// # Errors
    /// [`Error::Device`], or those of `take`.
    pub fn hidden(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        (caches, scratch): (&Caches, &Scratch),
        take: &mut dyn FnMut(&View) -> Result<()>,
    ) -> Result<()> {
        let t = scratch.layers.rows(batch.tokens)?;
        self.start(on, batch, &t)?;
        for layer in &self.layers {
            layer.forward(on, batch, caches, &t)?;
        }
        let flow = &t.block.flow;
        for first in (0..batch.tokens).step_by(self.limits.outputs as usize) {
            let rows = first..batch.tokens.min(first + self.limits.outputs);
            let head = scratch.head.rows(rows.end - rows.start)?;
            let (streams, pre) = (flow.streams.rows(rows.clone())?, flow.pre.rows(rows)?);
            self.head.norm(on, &streams, &pre, &head)?;
            take(&head.normed)?;
        }
        Ok(())
    }

    /// Streams and mix from token ids and pictures.
    pub fn start(&self, on: Lane<'_>, batch: &Batch, t: &LayerScratch) -> Result<()> {
        let flow = &t.block.flow;
        let (id, table) = (&batch.id, &self.embedding);
        on.run(&self.embed, EmbedIo { id, table, y: &flow.x })?;
        if let Some(PictureRows { rows, at }) = &batch.pictures {
            on.run(&self.place, PlaceRowsIo { rows, at, x: &flow.x })?;
        }
        let (streams, pre) = (&flow.streams, &flow.pre);
        Ok(on.run(&self.start, MhcStartIo { x: &flow.x, streams, pre })?)
    }

    /// Streams and mix of the upper rows, taken to the front of the buffers that the block at hand
    /// does not use.
    fn trail(&self, on: Lane<'_>, upper: &UpperRows, t: &LayerScratch) -> Result<LayerScratch> {
        let mut taken = t.rows(upper.rows.tokens)?;
        taken.block.flow = taken.block.flow.swapped();
        if upper.rows.tokens > 0 {
            let (from, to) = (&t.block.flow, &taken.block.flow);
            let (x, y) = (from.streams.join_last()?, to.streams.join_last()?);
            on.run(&self.gather_streams, GatherRowsIo { x: &x, at: &upper.at, y: &y })?;
            let (x, y) = (&from.pre, &to.pre);
            on.run(&self.gather_pre, GatherRowsIo { x, at: &upper.at, y })?;
        }
        Ok(taken)
    }

    /// Logits of the output rows.
    pub fn finish(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        t: LayerScratch,
        scratch: &Scratch,
    ) -> Result<Outcome> {
        let head = scratch.head.rows(batch.outputs)?;
        if batch.outputs > 0 {
            let (streams, pre) = (
                scratch.output_streams.rows(0..batch.outputs)?,
                scratch.output_pre.rows(0..batch.outputs)?,
            );
            let (flow, at) = (&t.block.flow, &batch.output_at);
            let x = flow.streams.join_last()?;
            on.run(&self.gather_streams, GatherRowsIo { x: &x, at, y: &streams })?;
            on.run(&self.gather_pre, GatherRowsIo { x: &flow.pre, at, y: &pre })?;
            let Embed { width, .. } = *self.embed.descriptor();
            let streams = streams.split_last(streams.shape()[1] / width, width)?;
            self.head.forward(on, &streams, &pre, &head)?;
        }
        Ok(Outcome { features: t.features, logits: head.logits })
    }
}

fn backbone_shape<'a>(
    (config, recipe): (&'a Config, &'a Recipe),
    share: crate::weights::Share,
    ratio: u64,
) -> BlockShape<'a> {
    BlockShape {
        config,
        recipe,
        share,
        ratio,
        window: config.attention.window_tokens as u64,
        experts: config.moe.experts as u64,
        experts_per_token: config.moe.experts_per_token as u64,
        pictures: true,
    }
}

/// The layers, and the weights of the draft that are left.
fn plan_layers(
    plans: &mut Plans<'_>,
    (config, recipe): (&Config, &Recipe),
    limits: Limits,
    mut weights: ModelWeights,
) -> Result<(Vec<Layer>, Option<super::dspark::DsparkWeights>)> {
    let mut layers = Vec::with_capacity(config.layers);
    let topology = config.topology().layers;
    for (index, (topology, block)) in topology.into_iter().zip(weights.layers).enumerate() {
        let shape = backbone_shape((config, recipe), weights.share, topology.ratio as u64);
        let memory = weights.engram.remove(&index).filter(|_| recipe.engram);
        let engram = match (memory, &config.engram, topology.engram, &weights.map) {
            (Some(w), Some(engram), Some(table), Some(map)) => {
                Some(Engram::plan(plans, config, (engram, table), map.clone(), w)?)
            }
            _ => None,
        };
        let place = (Some(&topology), limits.score_budget_bytes);
        let block = Block::plan(plans, &shape, place, block)?;
        layers.push(Layer::plan(plans, &shape, (index, topology), (engram, block))?);
    }
    Ok((layers, weights.dspark))
}
