//! The compressor of a layer that owns a compressed cache: latents pooled from one or two tokens,
//! stored as entries and, before they rotate, as index keys.

use tandem_hal::{
    Bf16Linear, Bf16LinearIo, Compress, CompressIo, Elem, Enc, F32Linear, F32LinearIo, Lane,
    NormRotateStore, NormRotateStoreIo, Plan, Real, RmsNorm, RmsNormIo, Rotate, Store, StoreIo,
    View,
};

use super::block::{BlockShape, Compressed};
use super::caches::SourceCaches;
use super::config::Config;
use super::plans::Plans;
use crate::error::{Error, Result};
use crate::weights::{Module, Room};

/// Weights of a compressor and its index keys.
pub struct CompressorWeights {
    wkv: View,
    /// Ratios above 1 only.
    wgate: Option<View>,
    norm: View,
    wk: View,
    k_norm: View,
}

impl CompressorWeights {
    /// Those of the layer at `prefix`.
    pub fn load(
        module: &mut Module<'_, '_>,
        config: &Config,
        prefix: &str,
        gated: bool,
    ) -> Result<Self> {
        let (hidden, head_dim) = (config.hidden_size as u64, config.attention.head_dim as u64);
        let index_dim = config.indexer.head_dim as u64;
        let name = |what| format!("{prefix}attn.{what}.weight");
        let (elem, shape) = (Elem::Bf16, [head_dim, hidden]);
        let wgate =
            gated.then(|| module.dense(&name("compressor.wgate"), elem, shape)).transpose()?;
        Ok(Self {
            wkv: module.dense(&name("compressor.wkv"), elem, shape)?,
            wgate,
            norm: module.plain(&name("compressor.norm"), elem, &[head_dim])?,
            wk: module.dense(&name("indexer.wk"), elem, [index_dim, head_dim])?,
            k_norm: module.plain(&name("indexer.k_norm"), elem, &[index_dim])?,
        })
    }
}

buffers! {
    /// Scratch of a compressor.
    pub struct CompressorScratch {
        /// `[tokens, 2 head_dim]` f32, value then gate.
        pair,
        /// `[tokens, head_dim]` bf16, before its norm.
        raw,
        /// `[tokens, head_dim]` bf16.
        latent,
        /// `[tokens, index head_dim]` bf16, before its norm.
        raw_key,
    }
}

impl CompressorScratch {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, tokens: u64) -> Result<Self> {
        let (head_dim, index_dim) =
            (config.attention.head_dim as u64, config.indexer.head_dim as u64);
        Ok(Self {
            pair: room.view(Enc::F32, &[tokens, 2 * head_dim])?,
            raw: room.view(Enc::BF16, &[tokens, head_dim])?,
            latent: room.view(Enc::BF16, &[tokens, head_dim])?,
            raw_key: room.view(Enc::BF16, &[tokens, index_dim])?,
        })
    }
}

/// How the latents of a step are made.
enum Pooling {
    /// One token a latent.
    Single { project: Plan<Bf16Linear> },
    /// Two tokens a latent: every token leaves a row, the second one pools both.
    Gated(Box<Gate>),
}

/// Steps of a gated pooling.
struct Gate {
    project: Plan<F32Linear>,
    open: Plan<Store>,
    compress: Plan<Compress>,
    wgate: View,
}

/// The compressor of one layer.
pub struct Compressor {
    pooling: Pooling,
    norm: Plan<RmsNorm>,
    project_key: Plan<Bf16Linear>,
    store_key: Plan<NormRotateStore>,
    store: Plan<NormRotateStore>,
    w: CompressorWeights,
}

impl Compressor {
    /// Plans for a layer.
    pub fn plan(
        plans: &mut Plans<'_>,
        shape: &BlockShape<'_>,
        w: CompressorWeights,
    ) -> Result<Self> {
        let (config, ratio, formats) = (shape.config, shape.ratio, &shape.recipe.formats);
        let (hidden, head_dim) = (config.hidden_size as u64, config.attention.head_dim as u64);
        let (eps, index_dim) = (Real::new(config.norm_eps), config.indexer.head_dim as u64);
        // An entry's position is that of its group's first token.
        let store = |dim, cache| {
            let rotate = Rotate { group: ratio, ..config.rotation(ratio, dim) };
            NormRotateStore { eps, rotate, cache }
        };
        let linear = |n, k| Bf16Linear { n, k, bias: false };
        let pooling = match &w.wgate {
            None => Pooling::Single { project: plans.plan(linear(head_dim, hidden))? },
            Some(wgate) => {
                let (x, weight, open) = (Elem::Bf16, Elem::Bf16, formats.open());
                Pooling::Gated(Box::new(Gate {
                    project: plans.plan(F32Linear { n: head_dim, k: hidden, x, weight })?,
                    open: plans.plan(Store { cache: open.clone(), x: Elem::F32 })?,
                    compress: plans.plan(Compress { open, ratio })?,
                    wgate: wgate.clone(),
                }))
            }
        };
        Ok(Self {
            pooling,
            norm: plans.plan(RmsNorm { width: head_dim, eps })?,
            project_key: plans.plan(linear(index_dim, head_dim))?,
            store_key: plans.plan(store(index_dim, formats.key(ratio)))?,
            store: plans.plan(store(head_dim, formats.latent(ratio)))?,
            w,
        })
    }

    /// Entries and index keys of the groups that rows with normed inputs `x` complete.
    pub fn forward(
        &self,
        on: Lane<'_>,
        x: &View,
        (position, rows): (&View, &Compressed<'_>),
        caches: &SourceCaches,
        t: &CompressorScratch,
    ) -> Result<()> {
        let w = &self.w;
        self.pool(on, x, rows, caches, t)?;
        on.run(&self.norm, RmsNormIo { x: &t.raw, weight: &w.norm, y: &t.latent })?;
        let none = View::absent(Enc::BF16);
        let io = Bf16LinearIo { x: &t.latent, weight: &w.wk, bias: &none, y: &t.raw_key };
        on.run(&self.project_key, io)?;
        let (at, cache) = (rows.store, &caches.keys);
        let (x, weight) = (&t.raw_key, &w.k_norm);
        on.run(&self.store_key, NormRotateStoreIo { x, weight, position, at, cache })?;
        // Index keys are of latents that are not turned, entries of those that are.
        let (x, weight, cache) = (&t.raw, &w.norm, &caches.latents);
        Ok(on.run(&self.store, NormRotateStoreIo { x, weight, position, at, cache })?)
    }

    /// Latents before their norm. Rows that complete no group get zeros, which go nowhere.
    fn pool(
        &self,
        on: Lane<'_>,
        x: &View,
        rows: &Compressed<'_>,
        caches: &SourceCaches,
        t: &CompressorScratch,
    ) -> Result<()> {
        let wkv = &self.w.wkv;
        match &self.pooling {
            Pooling::Single { project } => {
                let none = View::absent(Enc::BF16);
                Ok(on.run(project, Bf16LinearIo { x, weight: wkv, bias: &none, y: &t.raw })?)
            }
            Pooling::Gated(gate) => {
                let Gate { project, open, compress, wgate } = gate.as_ref();
                let missing = || Error::Internal {
                    invariant: format!("gated source {} has open groups", caches.layer),
                };
                let cache = caches.open.as_ref().ok_or_else(missing)?;
                let width = project.descriptor().n;
                let (values, gates) = (t.pair.cols(0..width)?, t.pair.cols(width..2 * width)?);
                on.run(project, F32LinearIo { x, weight: wkv, y: &values })?;
                on.run(project, F32LinearIo { x, weight: wgate, y: &gates })?;
                on.run(open, StoreIo { x: &t.pair, at: rows.open_store, cache })?;
                let members = rows.open_members;
                Ok(on.run(compress, CompressIo { open: cache, members, y: &t.raw })?)
            }
        }
    }
}
