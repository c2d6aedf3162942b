//! A backbone layer: what is done to its input, then its block.
//!
//! A layer can run alone: fill the streams, the mix handed down and, for a layer that reuses a
//! selection, that selection in the scratch; run; read everything back from scratch and caches.

use tandem_hal::{Enc, Lane, MhcMean, MhcMeanIo, Plan, View};

use super::block::{Block, BlockCaches, BlockScratch, BlockShape, Rows};
use super::caches::Caches;
use super::engram::{Engram, EngramRows, EngramScratch};
use super::plans::Plans;
use super::topology::LayerTopology;
use crate::error::Result;
use crate::exec::Batch;
use crate::weights::Room;

/// Scratch of the backbone, used by one layer after another.
#[derive(Debug, Clone)]
pub struct LayerScratch {
    /// Of blocks.
    pub block: BlockScratch,
    /// Of the n-gram memory, if the model has one.
    pub engram: Option<EngramScratch>,
    /// `[tokens, targets * hidden]` bf16, what the draft captures; `None` without draft stages.
    pub features: Option<View>,
}

impl LayerScratch {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, shape: &BlockShape<'_>, tokens: u64) -> Result<Self> {
        let config = shape.config;
        let experts = (shape.experts, shape.experts_per_token);
        let compresses = config.compression.ratios.iter().any(|ratio| *ratio > 0);
        let block = BlockScratch::reserve(room, config, experts, (tokens, compresses))?;
        let engram = config.engram.as_ref();
        let engram = engram.map(|engram| EngramScratch::reserve(room, config, engram, tokens));
        let hidden = config.hidden_size as u64;
        let targets = config.dspark.as_ref().map(|dspark| dspark.target_layers.len() as u64);
        let features = targets.map(|n| room.view(Enc::BF16, &[tokens, n * hidden])).transpose()?;
        Ok(Self { block, engram: engram.transpose()?, features })
    }

    /// The first `rows` rows of every buffer.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn rows(&self, rows: u64) -> Result<Self> {
        Ok(Self {
            block: self.block.rows(rows)?,
            engram: self.engram.as_ref().map(|t| t.rows(rows)).transpose()?,
            features: self.features.as_ref().map(|t| t.rows(0..rows)).transpose()?,
        })
    }
}

/// One backbone layer.
pub struct Layer {
    index: usize,
    topology: LayerTopology,
    engram: Option<Engram>,
    /// The plain mean of the streams, for the draft.
    capture: Option<Plan<MhcMean>>,
    block: Block,
}

impl Layer {
    /// Plans for layer `index`.
    pub fn plan(
        plans: &mut Plans<'_>,
        shape: &BlockShape<'_>,
        (index, topology): (usize, LayerTopology),
        (engram, block): (Option<Engram>, Block),
    ) -> Result<Self> {
        let (streams, width) = (shape.config.hyper.streams as u64, shape.config.hidden_size as u64);
        let capture = topology.capture.map(|_| plans.plan(MhcMean { streams, width }));
        Ok(Self { index, topology, engram, capture: capture.transpose()?, block })
    }

    /// Its place in the network.
    pub fn topology(&self) -> &LayerTopology {
        &self.topology
    }

    /// The whole layer: streams and mix in place.
    pub fn forward(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        caches: &Caches,
        t: &LayerScratch,
    ) -> Result<()> {
        self.inject(on, batch, t)?;
        self.run(on, batch, caches, t, false)
    }

    /// What the layers above need of rows that they do not run on: the n-gram memory added, entries
    /// and index keys stored.
    pub fn publish(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        caches: &Caches,
        t: &LayerScratch,
    ) -> Result<()> {
        self.inject(on, batch, t)?;
        let rows = Rows::of(batch, self.topology.ratio as u64);
        self.block.publish(on, &rows, &self.caches(caches), &t.block)
    }

    /// The rest of the layer for rows that [`Layer::publish`] has seen.
    pub fn resume(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        caches: &Caches,
        t: &LayerScratch,
    ) -> Result<()> {
        self.run(on, batch, caches, t, true)
    }

    fn run(
        &self,
        on: Lane<'_>,
        batch: &Batch,
        caches: &Caches,
        t: &LayerScratch,
        published: bool,
    ) -> Result<()> {
        self.capture(on, t)?;
        let rows = Rows::of(batch, self.topology.ratio as u64);
        self.block.forward(on, &rows, &self.caches(caches), &t.block, published)
    }

    fn caches<'c>(&self, caches: &'c Caches) -> BlockCaches<'c> {
        BlockCaches::of(caches, self.index, &self.topology)
    }

    fn inject(&self, on: Lane<'_>, batch: &Batch, t: &LayerScratch) -> Result<()> {
        let (Some(engram), Some(scratch)) = (&self.engram, &t.engram) else { return Ok(()) };
        let rows = EngramRows { history: &batch.history, masked: &batch.picture };
        engram.forward(on, &rows, &t.block.flow.streams, scratch)
    }

    fn capture(&self, on: Lane<'_>, t: &LayerScratch) -> Result<()> {
        let (Some(plan), Some(place)) = (&self.capture, self.topology.capture) else {
            return Ok(());
        };
        let Some(features) = &t.features else { return Ok(()) };
        let (width, place) = (plan.descriptor().width, place as u64);
        let y = features.cols(place * width..(place + 1) * width)?;
        Ok(on.run(plan, MhcMeanIo { streams: &t.block.flow.streams, y: &y })?)
    }
}
