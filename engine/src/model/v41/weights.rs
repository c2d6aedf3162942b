//! All weights of a model on one device.

use std::collections::HashMap;

use tandem_hal::{Device, Elem, View};

use super::block::BlockWeights;
use super::config::Config;
use super::dspark::DsparkWeights;
use super::engram::EngramWeights;
use super::head::HeadWeights;
use crate::error::{Error, Result};
use crate::weights::{Loader, Progress, Share, Source, load};

/// Weights of embedding, layers, head and draft stages. The vision tower's are its own.
pub struct ModelWeights {
    pub(super) share: Share,
    /// `[vocab, hidden]` bf16.
    pub(super) embedding: View,
    /// `[vocab]` i32, compressed id of each token id; `None` without n-gram memory.
    pub(super) map: Option<View>,
    pub(super) layers: Vec<BlockWeights>,
    /// By layer.
    pub(super) engram: HashMap<usize, EngramWeights>,
    /// `[hidden]` bf16.
    pub(super) norm: View,
    pub(super) head: HeadWeights,
    pub(super) dspark: Option<DsparkWeights>,
}

impl ModelWeights {
    /// Reads the weights of a rank onto its device. `map` holds the compressed id of each token id
    /// (see [`crate::text::VocabularyMap`]) and is empty for a model without n-gram memory.
    /// Without `draft`, the draft stages are left out.
    ///
    /// # Errors
    /// [`Error::Tensor`] naming a tensor with NaN weights, [`Error::Device`] when memory runs out,
    /// [`Error::Argument`] when the ranks do not divide the model.
    pub fn load(
        device: &dyn Device,
        config: &Config,
        (map, draft): (&[i32], bool),
        source: &Source<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        if config.engram.is_some() && map.len() != config.vocab_size {
            let (found, vocab) = (map.len(), config.vocab_size);
            let problem = format!("{found} compressed ids for {vocab} tokens; use its tokenizer");
            return Err(Error::argument("vocabulary map", problem));
        }
        load(device, source, progress, |loader| Self::read(loader, config, map, draft))
    }

    fn read(loader: &mut Loader<'_>, config: &Config, map: &[i32], draft: bool) -> Result<Self> {
        let (vocab, hidden) = (config.vocab_size as u64, config.hidden_size as u64);
        let (embedding, map, norm) = loader.module("embed", |module| {
            let embedding = module.plain("embed.weight", Elem::Bf16, &[vocab, hidden])?;
            let map = config.engram.is_some().then(|| module.computed(map)).transpose()?;
            Ok((embedding, map, module.plain("norm.weight", Elem::Bf16, &[hidden])?))
        })?;
        let mut layers = Vec::with_capacity(config.layers);
        let mut memories = HashMap::new();
        for (layer, topology) in config.topology().layers.iter().enumerate() {
            let prefix = format!("layers.{layer}.");
            if let (Some(index), Some(engram)) = (topology.engram, &config.engram) {
                let memory = EngramWeights::load(loader, config, &prefix, (engram, index))?;
                memories.insert(layer, memory);
            }
            let place = (prefix.as_str(), config.moe.experts as u64);
            layers.push(BlockWeights::load(loader, config, place, Some(topology))?);
        }
        let dspark = config.dspark.as_ref().filter(|_| draft);
        Ok(Self {
            share: loader.share(),
            embedding,
            map,
            layers,
            engram: memories,
            norm,
            head: HeadWeights::load(loader, config)?,
            dspark: dspark.map(|dspark| DsparkWeights::load(loader, config, dspark)).transpose()?,
        })
    }
}
