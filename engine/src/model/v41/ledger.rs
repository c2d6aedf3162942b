//! The byte ledger: what a checkpoint holds, line by line, from the configuration alone.

use super::config::Config;
use super::names::{Expected, Format, Part, Place, catalogue};
use crate::weights::Dtype;

/// Bytes and parameters of a model's checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// Lines that hold tensors, in a fixed order.
    pub lines: Vec<LedgerLine>,
    /// Tensors.
    pub tensors: u64,
    /// Bytes of all tensors.
    pub total_bytes: u64,
    /// The same bytes by number format.
    pub formats: FormatBytes,
    /// Parameters, total and active.
    pub parameters: Parameters,
    /// Bytes a sequence keeps.
    pub caches: CacheLedger,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    /// What the tensors are for.
    pub part: Part,
    /// Tensors, scales included.
    pub tensors: u64,
    /// Bytes that are not scales.
    pub payload_bytes: u64,
    /// Bytes of scales.
    pub scale_bytes: u64,
}

/// The checkpoint by number format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatBytes {
    /// FP4 experts.
    pub fp4: u64,
    /// FP8 n-gram tables.
    pub engram_fp8: u64,
    /// Scales of all kinds.
    pub scales: u64,
    /// Other FP8.
    pub fp8: u64,
    /// bf16.
    pub bf16: u64,
    /// f32.
    pub f32: u64,
}

/// Parameters: FP4 pairs count twice, scales not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters {
    /// All.
    pub total: u64,
    /// n-gram tables.
    pub engram_tables: u64,
    /// Draft stages.
    pub draft: u64,
    /// The rest, vision and n-gram projections included.
    pub backbone: u64,
    /// Parameters one output token meets: all layers with the experts it visits, one row of the
    /// embedding, its n-gram rows, and the head.
    pub active_per_output_token: u64,
    /// Parameters one prompt token must meet: the layers below the last cache owner, that owner's
    /// compressor and index key, one row of the embedding, and its n-gram rows.
    pub active_per_prompt_token: u64,
}

/// Bytes that a sequence keeps, packed without loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLedger {
    /// One compressed entry: 4-bit codes and one scale byte per 16.
    pub latent_entry_bytes: u64,
    /// One index key: 4-bit codes and one scale byte per 32.
    pub index_entry_bytes: u64,
    /// Tokens per entry of each layer that owns a cache.
    pub owner_ratios: Vec<u64>,
    /// One window position of one layer: 8-bit codes and one scale byte per 32.
    pub window_entry_bytes: u64,
    /// Backbone layers and draft stages, each with a window.
    pub window_layers: u64,
    /// Window, tokens.
    pub window_tokens: u64,
    /// f32 value and gate of one position of one compressor with a gate.
    pub open_group_bytes: u64,
    /// Compressors with a gate.
    pub gated_owners: u64,
}

impl CacheLedger {
    /// The sizes of a configuration.
    pub fn of(config: &Config) -> Self {
        let (head_dim, index_dim) =
            (config.attention.head_dim as u64, config.indexer.head_dim as u64);
        let owner_ratios: Vec<_> = config
            .compression
            .kv_sources
            .iter()
            .map(|layer| config.compression.ratios[*layer] as u64)
            .collect();
        let stages = config.dspark.as_ref().map_or(0, |dspark| dspark.stages);
        Self {
            latent_entry_bytes: head_dim / 2 + head_dim / 16,
            index_entry_bytes: index_dim / 2 + index_dim / 32,
            gated_owners: owner_ratios.iter().filter(|ratio| **ratio > 1).count() as u64,
            owner_ratios,
            window_entry_bytes: head_dim + head_dim / 32,
            window_layers: (config.layers + stages) as u64,
            window_tokens: config.attention.window_tokens as u64,
            open_group_bytes: 2 * head_dim * 4,
        }
    }

    /// Compressed entries and index keys of the first `tokens` tokens.
    pub fn compressed_bytes(&self, tokens: u64) -> u64 {
        let entries: u64 = self.owner_ratios.iter().map(|ratio| tokens / ratio).sum();
        entries * (self.latent_entry_bytes + self.index_entry_bytes)
    }

    /// Compressed bytes per token of a long sequence.
    pub fn bytes_per_token(&self) -> f64 {
        let per_entry = (self.latent_entry_bytes + self.index_entry_bytes) as f64;
        self.owner_ratios.iter().map(|ratio| per_entry / *ratio as f64).sum()
    }

    /// Windows of one sequence, whatever its length.
    pub fn window_bytes(&self) -> u64 {
        self.window_layers * self.window_tokens * self.window_entry_bytes
    }
}

impl Ledger {
    /// The ledger of a configuration.
    pub fn of(config: &Config) -> Self {
        let mut ledger = Self {
            lines: Vec::new(),
            tensors: 0,
            total_bytes: 0,
            formats: FormatBytes::default(),
            parameters: Parameters::default(),
            caches: CacheLedger::of(config),
        };
        let (mut output, mut prompt) = (Active::default(), Active::default());
        for tensor in catalogue(config) {
            ledger.enter(&tensor);
            output.meet(config, &tensor);
            if serves_prompt(config, &tensor) {
                prompt.meet(config, &tensor);
            }
        }
        ledger.lines.sort_by_key(|line| line.part);
        let parameters = &mut ledger.parameters;
        parameters.backbone = parameters.total - parameters.engram_tables - parameters.draft;
        parameters.active_per_output_token = output.total(config);
        parameters.active_per_prompt_token = prompt.total(config);
        ledger
    }

    /// The line of a part, if the checkpoint has it.
    pub fn line(&self, part: Part) -> Option<&LedgerLine> {
        self.lines.iter().find(|line| line.part == part)
    }

    fn enter(&mut self, tensor: &Expected) {
        let (bytes, parameters) = (tensor.length_bytes(), tensor.parameters());
        let line = match self.lines.iter().position(|line| line.part == tensor.part) {
            Some(index) => &mut self.lines[index],
            None => {
                self.lines.push(LedgerLine {
                    part: tensor.part,
                    tensors: 0,
                    payload_bytes: 0,
                    scale_bytes: 0,
                });
                self.lines.last_mut().expect("a line was just pushed")
            }
        };
        line.tensors += 1;
        match tensor.format {
            Format::Scale => line.scale_bytes += bytes,
            _ => line.payload_bytes += bytes,
        }
        self.tensors += 1;
        self.total_bytes += bytes;
        *self.formats.of(tensor) += bytes;
        self.parameters.total += parameters;
        match (tensor.place, tensor.part) {
            (_, Part::EngramTables) => self.parameters.engram_tables += parameters,
            (Place::Draft(_), _) => self.parameters.draft += parameters,
            _ => {}
        }
    }
}

impl FormatBytes {
    fn of(&mut self, tensor: &Expected) -> &mut u64 {
        match (tensor.format, tensor.part) {
            (Format::Scale, _) => &mut self.scales,
            (Format::Fp8, Part::EngramTables) => &mut self.engram_fp8,
            (Format::Fp8, _) => &mut self.fp8,
            (Format::Fp4Pairs, _) => &mut self.fp4,
            _ if tensor.format.stored() == Dtype::F32 => &mut self.f32,
            _ => &mut self.bf16,
        }
    }
}

/// Parameters met by one token.
#[derive(Default)]
struct Active {
    dense: u64,
    /// All routed experts of the layers met; a token visits a share of them.
    experts: u64,
}

impl Active {
    fn meet(&mut self, config: &Config, tensor: &Expected) {
        let parameters = tensor.parameters();
        match (tensor.place, tensor.part) {
            (Place::Draft(_) | Place::Vision, _) => {}
            (_, Part::BackboneExperts) => self.experts += parameters,
            (_, Part::Embedding) => self.dense += config.hidden_size as u64,
            (_, Part::EngramTables) => {
                let rows = config.engram.as_ref().map_or(0, |engram| engram.columns() as u64);
                // A scale tensor stands for no parameters and has none met.
                self.dense += rows * parameters / tensor.shape[0];
            }
            _ => self.dense += parameters,
        }
    }

    /// Experts are alike, so the share is exact.
    fn total(&self, config: &Config) -> u64 {
        let moe = &config.moe;
        self.dense + self.experts * moe.experts_per_token as u64 / moe.experts as u64
    }
}

/// Whether every prompt token needs the tensor. Layers above the last cache owner run only on the
/// end of a prompt; of that owner itself the compressor and the index key run on all of it.
fn serves_prompt(config: &Config, tensor: &Expected) -> bool {
    let owner = config.compression.kv_sources.last().copied().unwrap_or(config.layers);
    match tensor.place {
        Place::Trunk => tensor.part == Part::Embedding,
        Place::Layer(layer) if layer != owner => layer < owner,
        Place::Layer(_) => matches!(
            tensor.part,
            Part::CompressorLatent
                | Part::CompressorGate
                | Part::CompressorNorm
                | Part::IndexKey
                | Part::IndexKeyNorm
                | Part::EngramTables
                | Part::EngramProjection
                | Part::EngramGate
        ),
        Place::Draft(_) | Place::Vision => false,
    }
}
