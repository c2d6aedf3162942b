//! One block: n-gram memory where it has one, attention, experts, each inside the streams.

use tandem_hal::{Lane, View};

use super::attention::{Attention, AttentionScratch, AttentionWeights, Selected};
use super::caches::{Caches, SourceCaches};
use super::compressor::{Compressor, CompressorScratch, CompressorWeights};
use super::config::Config;
use super::indexer::{IndexScratch, Indexer, IndexerWeights, Selection};
use super::mhc::{Flow, SubLayer, SubLayerWeights};
use super::moe::{Moe, MoeScratch, MoeWeights};
use super::plans::Plans;
use super::recipe::Recipe;
use super::topology::LayerTopology;
use crate::error::{Error, Result};
use crate::exec::Batch;
use crate::weights::{Loader, Room, Share};

/// What sets one block apart from another.
#[derive(Clone, Copy)]
pub struct BlockShape<'a> {
    /// The model.
    pub config: &'a Config,
    /// Its arithmetic.
    pub recipe: &'a Recipe,
    /// The rank's part of the weights.
    pub share: Share,
    /// Tokens of a compressed entry; 0 for window only.
    pub ratio: u64,
    /// Length of the window lists.
    pub window: u64,
    /// Routed experts.
    pub experts: u64,
    /// Routed experts that a token visits.
    pub experts_per_token: u64,
    /// Whether rows of pictures are routed by a bias of their own.
    pub pictures: bool,
}

/// What a block knows of its rows, besides their streams.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// `[tokens]` i32, -1 for padding.
    pub position: &'a View,
    /// `[tokens, window]` i32 addresses.
    pub window_at: &'a View,
    /// `[tokens]` i32 address of the row's own window entry.
    pub window_store: &'a View,
    /// `[tokens]` i32, 1 for rows of pictures; `None` where they are routed like text.
    pub picture: Option<&'a View>,
    /// Layers that compress only.
    pub compressed: Option<Compressed<'a>>,
}

/// What a layer that compresses knows of its rows.
#[derive(Clone, Copy)]
pub struct Compressed<'a> {
    /// `[tokens]` i32, the row of the page table.
    pub sequence: &'a View,
    /// `[sequences, table pages]` i32.
    pub table: &'a View,
    /// `[tokens]` i32 entries each row may see.
    pub visible: &'a View,
    /// `[tokens]` i32 address of the entry that the row completes.
    pub store: &'a View,
    /// `[1, entries]` bytes, never read.
    pub entries: &'a View,
    /// `[tokens]` i32 address of the row's open-group row.
    pub open_store: &'a View,
    /// `[tokens, 2]` i32 members of the group that the row completes.
    pub open_members: &'a View,
}

impl<'a> Rows<'a> {
    /// The rows of a step as a layer with this ratio sees them.
    pub fn of(batch: &'a Batch, ratio: u64) -> Self {
        let lists = match ratio {
            0 => None,
            1 => Some(&batch.ratio1),
            _ => Some(&batch.ratio2),
        };
        Rows {
            position: &batch.position,
            window_at: &batch.window_at,
            window_store: &batch.window_store,
            picture: Some(&batch.picture),
            compressed: lists.map(|lists| Compressed {
                sequence: &batch.sequence,
                table: &batch.table,
                visible: &lists.visible,
                store: &lists.store,
                entries: &lists.entries,
                open_store: &batch.open_store,
                open_members: &batch.open_members,
            }),
        }
    }
}

/// Weights of a block without its n-gram memory.
pub struct BlockWeights {
    attn: (SubLayerWeights, AttentionWeights),
    compressor: Option<CompressorWeights>,
    indexer: Option<IndexerWeights>,
    ffn: (SubLayerWeights, MoeWeights),
}

impl BlockWeights {
    /// Those at `prefix`; a draft stage has no topology.
    pub fn load(
        loader: &mut Loader<'_>,
        config: &Config,
        (prefix, experts): (&str, u64),
        topology: Option<&LayerTopology>,
    ) -> Result<Self> {
        let owns_cache = topology.is_some_and(|t| t.owns_cache);
        let owns_gate = topology.is_some_and(|t| t.owns_gate);
        let owns_selection = topology.is_some_and(|t| t.owns_selection);
        let (attn, compressor, indexer) = loader.module(&format!("{prefix}attn"), |module| {
            let around = SubLayerWeights::load(module, config, prefix, "attn")?;
            let attention = AttentionWeights::load(module, config, prefix)?;
            let compressor = owns_cache
                .then(|| CompressorWeights::load(module, config, prefix, owns_gate))
                .transpose()?;
            let indexer =
                owns_selection.then(|| IndexerWeights::load(module, config, prefix)).transpose()?;
            Ok(((around, attention), compressor, indexer))
        })?;
        let ffn = loader.module(&format!("{prefix}ffn"), |module| {
            let around = SubLayerWeights::load(module, config, prefix, "ffn")?;
            Ok((around, MoeWeights::load(module, config, prefix, experts)?))
        })?;
        Ok(Self { attn, compressor, indexer, ffn })
    }
}

/// Scratch of a block, used by one block after another.
#[derive(Debug, Clone)]
pub struct BlockScratch {
    /// The streams, and what surrounds sub-layers.
    pub flow: Flow,
    /// Of attention.
    pub attention: AttentionScratch,
    /// Of experts.
    pub moe: MoeScratch,
    /// Of layers that compress; `None` when there are none.
    pub compressed: Option<CompressedScratch>,
}

/// Scratch of layers that compress.
#[derive(Debug, Clone)]
pub struct CompressedScratch {
    /// Of compressors.
    pub compressor: CompressorScratch,
    /// Of indexers.
    pub index: IndexScratch,
    /// The current selection.
    pub selection: Selection,
}

impl BlockScratch {
    /// Buffers for up to `tokens` rows of blocks with these experts.
    pub fn reserve(
        room: &mut Room<'_>,
        config: &Config,
        experts: (u64, u64),
        (tokens, compresses): (u64, bool),
    ) -> Result<Self> {
        let compressed = compresses.then(|| {
            Ok::<_, Error>(CompressedScratch {
                compressor: CompressorScratch::reserve(room, config, tokens)?,
                index: IndexScratch::reserve(room, config, tokens)?,
                selection: Selection::reserve(room, config, tokens)?,
            })
        });
        let compressed = compressed.transpose()?;
        Ok(Self {
            flow: Flow::reserve(room, config, tokens)?,
            attention: AttentionScratch::reserve(room, config, tokens)?,
            moe: MoeScratch::reserve(room, config, experts, tokens)?,
            compressed,
        })
    }

    /// The first `rows` rows of every buffer.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn rows(&self, rows: u64) -> Result<Self> {
        let compressed = self.compressed.as_ref().map(|t| {
            Ok::<_, tandem_hal::Error>(CompressedScratch {
                compressor: t.compressor.rows(rows)?,
                index: t.index.rows(rows)?,
                selection: t.selection.rows(rows)?,
            })
        });
        Ok(Self {
            flow: self.flow.rows(rows)?,
            attention: self.attention.rows(rows)?,
            moe: self.moe.rows(rows)?,
            compressed: compressed.transpose()?,
        })
    }
}

/// The caches that a block works on.
#[derive(Clone, Copy)]
pub struct BlockCaches<'a> {
    /// Its own window.
    pub window: &'a View,
    /// Those of its compressed source, if it has one.
    pub source: Option<&'a SourceCaches>,
}

impl<'a> BlockCaches<'a> {
    /// Those of backbone layer `layer`.
    pub fn of(caches: &'a Caches, layer: usize, topology: &LayerTopology) -> Self {
        let source = topology.kv_source.map(|source| caches.source(source));
        BlockCaches { window: &caches.windows[layer], source }
    }
}

/// A block.
pub struct Block {
    attn: SubLayer,
    attention: Attention,
    compressor: Option<Compressor>,
    indexer: Option<Indexer>,
    ffn: SubLayer,
    moe: Moe,
}

impl Block {
    /// Plans for a block; a draft stage has no topology.
    pub fn plan(
        plans: &mut Plans<'_>,
        shape: &BlockShape<'_>,
        (topology, score_budget_bytes): (Option<&LayerTopology>, u64),
        w: BlockWeights,
    ) -> Result<Self> {
        let (config, recipe) = (shape.config, shape.recipe);
        let compressor =
            w.compressor.map(|w| plans.beside(|plans| Compressor::plan(plans, shape, w)));
        let compressor = compressor.transpose()?;
        let indexer = match (w.indexer, topology) {
            (Some(w), Some(topology)) => {
                let stage = (topology.candidates, score_budget_bytes);
                Some(Indexer::plan(plans, shape, stage, w)?)
            }
            _ => None,
        };
        Ok(Self {
            attn: SubLayer::plan(plans, config, recipe, w.attn.0)?,
            attention: Attention::plan(plans, shape, w.attn.1)?,
            compressor,
            indexer,
            ffn: SubLayer::plan(plans, config, recipe, w.ffn.0)?,
            moe: Moe::plan(plans, shape, w.ffn.1)?,
        })
    }

    /// Its attention, for window entries of other inputs.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// The entries and keys that the rows complete, where the layer owns a compressed cache. All
    /// that the layers above need of rows that they do not run on.
    pub fn publish(
        &self,
        on: Lane<'_>,
        rows: &Rows<'_>,
        caches: &BlockCaches<'_>,
        t: &BlockScratch,
    ) -> Result<()> {
        self.attn.open(on, &t.flow)?;
        self.compress(on, rows, caches, t)
    }

    /// The block: `flow.streams` and `flow.pre` in place. With `published`, entries and keys of the
    /// rows are in the cache already.
    pub fn forward(
        &self,
        on: Lane<'_>,
        rows: &Rows<'_>,
        caches: &BlockCaches<'_>,
        t: &BlockScratch,
        published: bool,
    ) -> Result<()> {
        let flow = &t.flow;
        self.attn.open(on, flow)?;
        // Entries need nothing of the queries.
        let beside = on.fork()?;
        let compresses = self.compressor.is_some() && !published;
        if compresses {
            self.compress(beside, rows, caches, t)?;
        }
        let (window, at) = (caches.window, (rows.position, rows.window_store));
        // Nor is the chain that leads to compressed entries to get longer.
        let store = if compresses { on } else { beside };
        self.attention.store_window(store, &flow.x8, at, &t.attention.kv, window)?;
        self.attention.query(on, &flow.x8, rows.position, &t.attention)?;
        if let (Some(indexer), Some(scratch)) = (&self.indexer, &t.compressed) {
            let x = (&flow.x, &t.attention.qr8);
            indexer.query(on, x, rows.position, &scratch.index)?;
        }
        on.join()?;
        self.attn.mix_beside(on, flow)?;
        let selected = self.select(on, rows, caches, t)?;
        self.attention.forward(on, rows, (window, selected), &flow.y, &t.attention)?;
        self.attn.close(on, flow)?;
        let flow = &flow.swapped();
        self.ffn.open(on, flow)?;
        self.ffn.mix_beside(on, flow)?;
        self.moe.forward(on, flow, rows.picture, &t.moe)?;
        self.ffn.close(on, flow)
    }

    /// The compressed entries that the rows attend to, selected here or below.
    fn select<'a>(
        &self,
        on: Lane<'_>,
        rows: &Rows<'_>,
        caches: &BlockCaches<'a>,
        t: &'a BlockScratch,
    ) -> Result<Option<Selected<'a>>> {
        let (Some(compressed), Some(source)) = (&rows.compressed, caches.source) else {
            return Ok(None);
        };
        let CompressedScratch { index, selection, .. } = compressed_scratch(t)?;
        if let Some(indexer) = &self.indexer {
            indexer.forward(on, compressed, &source.keys, index, selection)?;
        }
        Ok(Some(Selected { latents: &source.latents, at: &selection.at }))
    }

    fn compress(
        &self,
        on: Lane<'_>,
        rows: &Rows<'_>,
        caches: &BlockCaches<'_>,
        t: &BlockScratch,
    ) -> Result<()> {
        let (Some(compressor), Some(compressed), Some(source)) =
            (&self.compressor, &rows.compressed, caches.source)
        else {
            return Ok(());
        };
        let scratch = &compressed_scratch(t)?.compressor;
        compressor.forward(on, &t.flow.x, (rows.position, compressed), source, scratch)
    }
}

fn compressed_scratch(t: &BlockScratch) -> Result<&CompressedScratch> {
    let invariant = "a layer that compresses has scratch for it".to_owned();
    t.compressed.as_ref().ok_or(Error::Internal { invariant })
}
