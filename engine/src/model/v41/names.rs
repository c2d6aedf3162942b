//! The tensor catalogue: every tensor a checkpoint of a configuration holds, by name, with its
//! format and its shape.

use super::config::Config;
use super::names_check;
use crate::error::Result;
use crate::weights::{Checkpoint, Dtype};

/// A tensor the checkpoint must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// Where in the model it belongs.
    pub place: Place,
    /// What it is for; the byte ledger's line.
    pub part: Part,
    /// Its elements.
    pub format: Format,
    /// Its shape in the release's format, outermost first.
    pub shape: Vec<u64>,
}

/// Where a tensor belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Embedding, final norm and head.
    Trunk,
    /// A backbone layer.
    Layer(usize),
    /// A draft stage.
    Draft(usize),
    /// Vision tower, aligner and image markers.
    Vision,
}

/// What a tensor is for. The order is that of the byte ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Routed experts of the backbone.
    BackboneExperts,
    /// Routed experts of the draft stages.
    DraftExperts,
    /// n-gram tables.
    EngramTables,
    /// Projection of n-gram rows to keys and value.
    EngramProjection,
    /// Weights on stream and key in the n-gram gate.
    EngramGate,
    /// First query projection.
    QueryDown,
    /// Second query projection.
    QueryUp,
    /// Window latent projection.
    Latent,
    /// First, grouped output projection.
    OutputDown,
    /// Second output projection.
    OutputUp,
    /// Shared experts.
    SharedExperts,
    /// Indexer query projection.
    IndexQuery,
    /// Indexer head weights.
    IndexWeights,
    /// Index key projection.
    IndexKey,
    /// Index key norm.
    IndexKeyNorm,
    /// Compressor projection.
    CompressorLatent,
    /// Compressor gate.
    CompressorGate,
    /// Compressor norm.
    CompressorNorm,
    /// Router.
    Router,
    /// Selection biases, text and image.
    RouterBiases,
    /// Hyper-connection coefficients.
    HyperConnections,
    /// Attention sinks.
    Sinks,
    /// Norms before attention and experts, of query and latent.
    LayerNorms,
    /// Token embedding.
    Embedding,
    /// Output head.
    Head,
    /// Final norm.
    FinalNorm,
    /// Everything of the draft stages but routed experts.
    DraftDense,
    /// Vision tower, aligner and image markers.
    Vision,
}

/// What a tensor's elements are, and in which file types they are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// bf16.
    Bf16,
    /// bf16, or f32 in some exports; used in f32.
    Bf16OrF32,
    /// f32.
    F32,
    /// e4m3fn codes whose scales lie in the sibling `.scale`.
    Fp8,
    /// e2m1 codes, two per byte along the columns, the even column in the low nibble.
    Fp4Pairs,
    /// Power-of-two scales, exponent bytes: byte `b` is `2^(b - 127)`.
    Scale,
}

impl Format {
    /// The release's file type.
    pub fn stored(self) -> Dtype {
        self.accepted()[0]
    }

    /// Every file type that holds the same bytes. f32 scales are refused: only powers of two could
    /// be kept exactly, and no published checkpoint of this model has them.
    pub fn accepted(self) -> &'static [Dtype] {
        match self {
            Self::Bf16 => &[Dtype::Bf16],
            Self::Bf16OrF32 => &[Dtype::Bf16, Dtype::F32],
            Self::F32 => &[Dtype::F32],
            Self::Fp8 => &[Dtype::F8E4M3],
            Self::Fp4Pairs => &[Dtype::I8, Dtype::U8, Dtype::F4],
            Self::Scale => &[Dtype::F8E8M0, Dtype::U8],
        }
    }
}

impl Expected {
    /// Bytes in the release's format.
    pub fn length_bytes(&self) -> u64 {
        self.format.stored().bytes(&self.shape).expect("a checked configuration does not overflow")
    }

    /// Parameters it stands for: two per byte of FP4 pairs, none for scales.
    pub fn parameters(&self) -> u64 {
        let elements = self.shape.iter().product::<u64>();
        match self.format {
            Format::Scale => 0,
            Format::Fp4Pairs => 2 * elements,
            _ => elements,
        }
    }

    /// The shape a tensor of `dtype` must have: `F4` counts codes where the others count pairs.
    pub fn shape_as(&self, dtype: Dtype) -> Vec<u64> {
        let mut shape = self.shape.clone();
        if let (Dtype::F4, Some(columns)) = (dtype, shape.last_mut()) {
            *columns *= 2;
        }
        shape
    }
}

/// Every tensor of a checkpoint: trunk, layers, draft stages, vision.
pub fn catalogue(config: &Config) -> impl Iterator<Item = Expected> + '_ {
    let stages = config.dspark.as_ref().map_or(0, |dspark| dspark.stages);
    let layers = (0..config.layers).flat_map(|layer| layer_tensors(config, layer));
    let drafts = (0..stages).flat_map(|stage| draft_tensors(config, stage));
    trunk_tensors(config).into_iter().chain(layers).chain(drafts).chain(vision_tensors(config))
}

/// Checks that a checkpoint is exactly the configuration's: no tensor missing, none besides, each
/// of an accepted type and the right shape. Reads no tensor and allocates nothing per element.
///
/// # Errors
/// One line naming the first few tensors at fault and how many more there are.
pub fn check(config: &Config, checkpoint: &Checkpoint) -> Result<()> {
    names_check::check(config, checkpoint)
}

/// Embedding, final norm and head.
pub fn trunk_tensors(config: &Config) -> Vec<Expected> {
    let mut list = Listing::new(config, Place::Trunk, String::new());
    let (vocab, hidden) = (config.vocab_size, config.hidden_size);
    list.bf16(Part::Embedding, "embed.weight", &[vocab, hidden]);
    list.bf16(Part::FinalNorm, "norm.weight", &[hidden]);
    list.bf16(Part::Head, "head.weight", &[vocab, hidden]);
    list.tensors
}

/// A backbone layer, with its n-gram memory where it has one.
pub fn layer_tensors(config: &Config, layer: usize) -> Vec<Expected> {
    let mut list = Listing::new(config, Place::Layer(layer), format!("layers.{layer}."));
    let topology = config.layer_topology(layer);
    list.block(config.moe.experts);
    let (hidden, head_dim) = (config.hidden_size, config.attention.head_dim);
    let index = &config.indexer;
    if topology.owns_cache {
        let shape = [head_dim, hidden];
        list.bf16(Part::CompressorLatent, "attn.compressor.wkv.weight", &shape);
        if topology.owns_gate {
            list.bf16(Part::CompressorGate, "attn.compressor.wgate.weight", &shape);
        }
        list.bf16(Part::CompressorNorm, "attn.compressor.norm.weight", &[head_dim]);
        let shape = [index.head_dim, head_dim];
        list.bf16(Part::IndexKey, "attn.indexer.wk.weight", &shape);
        let shape = [index.head_dim];
        list.bf16(Part::IndexKeyNorm, "attn.indexer.k_norm.weight", &shape);
    }
    if topology.owns_selection {
        let (rows, rank) = (index.heads * index.head_dim, config.attention.q_lora_rank);
        list.fp8(Part::IndexQuery, "attn.indexer.wq_b", rows, rank);
        let shape = [index.heads, hidden];
        list.bf16(Part::IndexWeights, "attn.indexer.weights_proj.weight", &shape);
    }
    if let Some(table) = topology.engram {
        list.engram(table);
    }
    list.tensors
}

/// A draft stage.
pub fn draft_tensors(config: &Config, stage: usize) -> Vec<Expected> {
    let Some(dspark) = &config.dspark else { return Vec::new() };
    let mut list = Listing::new(config, Place::Draft(stage), format!("mtp.{stage}."));
    list.block(dspark.experts);
    let (hidden, vocab, rank) = (config.hidden_size, config.vocab_size, dspark.markov_rank);
    let part = Part::DraftDense;
    if stage == 0 {
        list.fp8(part, "main_proj", hidden, dspark.target_layers.len() * hidden);
        list.bf16(part, "main_norm.weight", &[hidden]);
    }
    if stage + 1 == dspark.stages {
        list.bf16(part, "norm.weight", &[hidden]);
        list.bf16(part, "markov_head.embed.weight", &[vocab, rank]);
        list.bf16(part, "markov_head.head.weight", &[vocab, rank]);
        let shape = [1, hidden + rank];
        list.bf16(part, "confidence_head.proj.weight", &shape);
    }
    list.tensors
}

/// Vision tower, aligner and image markers; empty for text-only configurations.
pub fn vision_tensors(config: &Config) -> Vec<Expected> {
    let Some(vision) = &config.vision else { return Vec::new() };
    let mut list = Listing::new(config, Place::Vision, String::new());
    let (width, inner) = (vision.hidden_size, vision.intermediate_size);
    let pixels = 3 * vision.patch_pixels * vision.patch_pixels;
    list.picture("vision.patch_embed.proj.weight", &[width, pixels]);
    list.picture("vision.patch_embed.proj.bias", &[width]);
    for block in 0..vision.layers {
        let prefix = format!("vision.blocks.{block}.");
        list.picture_norm(&format!("{prefix}norm1.weight"), width);
        list.picture(&format!("{prefix}attn.wqkv.weight"), &[3 * width, width]);
        list.picture(&format!("{prefix}attn.wqkv.bias"), &[3 * width]);
        list.picture(&format!("{prefix}attn.wo.weight"), &[width, width]);
        list.picture(&format!("{prefix}attn.wo.bias"), &[width]);
        list.picture_norm(&format!("{prefix}norm2.weight"), width);
        list.picture(&format!("{prefix}mlp.w1.weight"), &[2 * inner, width]);
        list.picture(&format!("{prefix}mlp.w2.weight"), &[width, inner]);
    }
    list.picture_norm("vision.norm.weight", width);
    let (hidden, cell) = (config.hidden_size, vision.downsample * vision.downsample);
    list.picture("aligner.w1.weight", &[hidden, cell * width]);
    list.picture("aligner.w1.bias", &[hidden]);
    list.picture("aligner.w2.weight", &[hidden, hidden]);
    list.picture("aligner.w2.bias", &[hidden]);
    for marker in ["image_start", "image_newline", "image_end"] {
        list.picture_norm(marker, hidden);
    }
    list.tensors
}

/// Collects the tensors of one place.
struct Listing<'a> {
    config: &'a Config,
    place: Place,
    prefix: String,
    tensors: Vec<Expected>,
}

/// Scale blocks along columns, and along rows of FP8 matrices.
const BLOCK: usize = 32;

impl<'a> Listing<'a> {
    fn new(config: &'a Config, place: Place, prefix: String) -> Self {
        Self { config, place, prefix, tensors: Vec::new() }
    }

    fn push(&mut self, part: Part, name: &str, format: Format, shape: &[usize]) {
        let part = match (self.place, part) {
            (Place::Draft(_), Part::BackboneExperts) => Part::DraftExperts,
            (Place::Draft(_), _) => Part::DraftDense,
            _ => part,
        };
        self.tensors.push(Expected {
            name: format!("{}{name}", self.prefix),
            place: self.place,
            part,
            format,
            shape: shape.iter().map(|size| *size as u64).collect(),
        });
    }

    fn bf16(&mut self, part: Part, name: &str, shape: &[usize]) {
        self.push(part, name, Format::Bf16, shape);
    }

    fn f32(&mut self, part: Part, name: &str, shape: &[usize]) {
        self.push(part, name, Format::F32, shape);
    }

    fn picture(&mut self, name: &str, shape: &[usize]) {
        self.push(Part::Vision, name, Format::Bf16, shape);
    }

    fn picture_norm(&mut self, name: &str, width: usize) {
        self.push(Part::Vision, name, Format::Bf16OrF32, &[width]);
    }

    /// An FP8 matrix with one scale per square tile.
    fn fp8(&mut self, part: Part, name: &str, rows: usize, columns: usize) {
        self.push(part, &format!("{name}.weight"), Format::Fp8, &[rows, columns]);
        let tiles = [rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
        self.push(part, &format!("{name}.scale"), Format::Scale, &tiles);
    }

    /// An FP4 matrix with one scale per row and block of columns.
    fn fp4(&mut self, part: Part, name: &str, rows: usize, columns: usize) {
        self.push(part, &format!("{name}.weight"), Format::Fp4Pairs, &[rows, columns / 2]);
        self.push(part, &format!("{name}.scale"), Format::Scale, &[rows, columns / BLOCK]);
    }

    /// What every backbone layer and draft stage has.
    fn block(&mut self, experts: usize) {
        self.attention();
        self.mixes();
        let (hidden, inner) = (self.config.hidden_size, self.config.moe.intermediate_size);
        self.bf16(Part::Router, "ffn.gate.weight", &[experts, hidden]);
        self.f32(Part::RouterBiases, "ffn.gate.bias", &[experts]);
        self.f32(Part::RouterBiases, "ffn.gate.bias_vl", &[experts]);
        for expert in 0..experts {
            let name = |matrix: &str| format!("ffn.experts.{expert}.{matrix}");
            self.fp4(Part::BackboneExperts, &name("w1"), inner, hidden);
            self.fp4(Part::BackboneExperts, &name("w3"), inner, hidden);
            self.fp4(Part::BackboneExperts, &name("w2"), hidden, inner);
        }
        self.fp8(Part::SharedExperts, "ffn.shared_experts.w1", inner, hidden);
        self.fp8(Part::SharedExperts, "ffn.shared_experts.w3", inner, hidden);
        self.fp8(Part::SharedExperts, "ffn.shared_experts.w2", hidden, inner);
    }

    fn attention(&mut self) {
        let attention = &self.config.attention;
        let (hidden, heads, head_dim) =
            (self.config.hidden_size, attention.heads, attention.head_dim);
        let (q_rank, o_rank) = (attention.q_lora_rank, attention.o_lora_rank * attention.o_groups);
        let group = heads / attention.o_groups * head_dim;
        self.bf16(Part::LayerNorms, "attn_norm.weight", &[hidden]);
        self.bf16(Part::LayerNorms, "ffn_norm.weight", &[hidden]);
        self.fp8(Part::QueryDown, "attn.wq_a", q_rank, hidden);
        self.bf16(Part::LayerNorms, "attn.q_norm.weight", &[q_rank]);
        self.fp8(Part::QueryUp, "attn.wq_b", heads * head_dim, q_rank);
        self.fp8(Part::Latent, "attn.wkv", head_dim, hidden);
        self.bf16(Part::LayerNorms, "attn.kv_norm.weight", &[head_dim]);
        self.f32(Part::Sinks, "attn.attn_sink", &[heads]);
        self.fp8(Part::OutputDown, "attn.wo_a", o_rank, group);
        self.fp8(Part::OutputUp, "attn.wo_b", hidden, o_rank);
    }

    fn mixes(&mut self) {
        let hyper = &self.config.hyper;
        let (size, width) = (hyper.mix_size(), hyper.streams * self.config.hidden_size);
        for sublayer in ["attn", "ffn"] {
            let name = |what: &str| format!("hc_{sublayer}_{what}");
            let part = Part::HyperConnections;
            self.f32(part, &name("fn"), &[size, width]);
            self.f32(part, &name("base"), &[size]);
            self.f32(part, &name("scale"), &[3]);
        }
    }

    fn engram(&mut self, table: usize) {
        let engram = self.config.engram.as_ref().expect("the topology found an Engram layer");
        let (streams, hidden) = (self.config.hyper.streams, self.config.hidden_size);
        let (rows, width) = (engram.table_rows[table] as usize, engram.head_dim);
        // Tables have a scale per row and block of columns; the projection has square tiles.
        self.push(Part::EngramTables, "engram.embed.weight", Format::Fp8, &[rows, width]);
        let blocks = [rows, width / BLOCK];
        self.push(Part::EngramTables, "engram.embed.scale", Format::Scale, &blocks);
        let part = Part::EngramProjection;
        self.fp8(part, "engram.wkv", (streams + 1) * hidden, engram.width());
        self.bf16(Part::EngramGate, "engram.q_weight", &[streams, hidden]);
        self.bf16(Part::EngramGate, "engram.k_weight", &[streams, hidden]);
    }
}
