//! Typed configuration of a V4.1 model, read from `config.json` and fully checked.
//!
//! Only the file is the model: nothing here has a default that could stand in for a missing size.

use crate::error::{Error, Result};

/// A checked V4.1 configuration. One built by [`Config::from_json`] or [`Config::named`] satisfies
/// every constraint of the checkpoint format, so code behind it divides and indexes freely.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Rows of the embedding and of the head.
    pub vocab_size: usize,
    /// Width of one residual stream.
    pub hidden_size: usize,
    /// Backbone blocks.
    pub layers: usize,
    /// Epsilon of every RMS norm and of the hyper-connection statistic (1e-20 in the release).
    pub norm_eps: f32,
    /// Longest prompt plus output, tokens.
    pub max_position_tokens: usize,
    /// First token of a prompt.
    pub bos_token_id: u32,
    /// Token that ends an answer.
    pub eos_token_id: u32,
    /// Padding token.
    pub pad_token_id: u32,
    /// The id every position of an image span carries; absent in text-only checkpoints.
    pub image_token_id: Option<u32>,
    /// Heads, latents and window.
    pub attention: Attention,
    /// Rotary tables.
    pub rope: Rope,
    /// Which layers compress, select and share.
    pub compression: Compression,
    /// The indexer's sizes.
    pub indexer: Indexer,
    /// The residual streams and their mixing.
    pub hyper: HyperConnections,
    /// Experts of the backbone.
    pub moe: Moe,
    /// n-gram memory; `None` when no layer has one.
    pub engram: Option<Engram>,
    /// Draft stages; `None` when the checkpoint has none.
    pub dspark: Option<Dspark>,
    /// Vision tower; `None` in text-only checkpoints.
    pub vision: Option<Vision>,
    /// Rows and columns of an FP8 matrix that share one scale.
    pub weight_block: [usize; 2],
}

/// Attention sizes. Keys and values are one shared latent per token.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub heads: usize,
    /// Width of a head and of the shared latent.
    pub head_dim: usize,
    /// The last dims of a head that rotate.
    pub rope_dim: usize,
    /// Rank of the query's first projection.
    pub q_lora_rank: usize,
    /// Groups of the block-diagonal first output projection.
    pub o_groups: usize,
    /// Rank of one output group.
    pub o_lora_rank: usize,
    /// Sliding window, the current token included.
    pub window_tokens: usize,
}

/// Parameters of the two rotary tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of layers that do not compress and of the draft stages.
    pub base: f64,
    /// Base of layers that compress, together with YaRN.
    pub compressed_base: f64,
    /// YaRN's division of the slow frequencies.
    pub factor: f64,
    /// Rotations over the original length above which a frequency is kept.
    pub beta_fast: f64,
    /// Rotations over the original length below which a frequency is divided by `factor`.
    pub beta_slow: f64,
    /// Length the frequencies were trained at, tokens.
    pub original_tokens: usize,
}

/// Which layers own a compressed cache and which select from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compression {
    /// Tokens per compressed entry of each backbone layer: 0 (window only), 1 or 2.
    pub ratios: Vec<usize>,
    /// Layers that own a compressor, its cache and its index keys; ascending.
    pub kv_sources: Vec<usize>,
    /// Layers that own an indexer query; ascending, a superset of `kv_sources`.
    pub index_sources: Vec<usize>,
    /// The layer that publishes coarse candidates, if any.
    pub candidate_source: Option<usize>,
    /// Coarse blocks kept.
    pub candidate_blocks: usize,
    /// Compressed entries in a coarse block.
    pub candidate_block_entries: usize,
}

/// Indexer sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Indexer {
    /// Query heads.
    pub heads: usize,
    /// Width of a head; its last [`Attention::rope_dim`] dims rotate.
    pub head_dim: usize,
    /// Compressed entries kept per query.
    pub topk: usize,
}

/// Hyper-connections.
#[derive(Debug, Clone, PartialEq)]
pub struct HyperConnections {
    /// Copies of the residual.
    pub streams: usize,
    /// Sinkhorn rounds, the initial softmax counted as the first row step.
    pub sinkhorn_iterations: usize,
    /// Epsilon inside sigmoid and Sinkhorn only.
    pub eps: f32,
}

impl HyperConnections {
    /// Coefficients of one mix: one `pre` and one `post` per stream and a square matrix.
    pub fn mix_size(&self) -> usize {
        (2 + self.streams) * self.streams
    }
}

/// Mixture of experts of the backbone.
#[derive(Debug, Clone, PartialEq)]
pub struct Moe {
    /// Routed experts of a layer. Each layer has one shared expert besides.
    pub experts: usize,
    /// Routed experts that a token visits.
    pub experts_per_token: usize,
    /// Inner width, routed and shared alike, draft stages included.
    pub intermediate_size: usize,
    /// Factor on the normalised routing weights.
    pub route_scale: f32,
    /// Divisor of the router's logits.
    pub gate_temperature: f32,
    /// Limit of the activations before SiLU; `None` switches the clamps off.
    pub swiglu_limit: Option<f32>,
}

/// n-gram memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Engram {
    /// Layers before whose block rows are added; ascending.
    pub layers: Vec<usize>,
    /// Rows of each of those layers' tables.
    pub table_rows: Vec<u64>,
    /// Longest n-gram; orders run from 2.
    pub max_ngram: usize,
    /// Hash heads per order.
    pub heads: usize,
    /// Width of a table row.
    pub head_dim: usize,
    /// Where the walk over primes starts.
    pub bucket_base: u64,
    /// Token that stands for absent history, before compression of the vocabulary.
    pub pad_token_id: u32,
    /// Distinct ids after compression of the vocabulary.
    pub compressed_vocab_size: u64,
}

impl Engram {
    /// Rows looked up per token and layer.
    pub fn columns(&self) -> usize {
        (self.max_ngram - 1) * self.heads
    }

    /// Width of the concatenated rows.
    pub fn width(&self) -> usize {
        self.columns() * self.head_dim
    }
}

/// Draft stages.
#[derive(Debug, Clone, PartialEq)]
pub struct Dspark {
    /// Draft blocks.
    pub stages: usize,
    /// Tokens drafted per step, the width the block was trained at.
    pub block_size: usize,
    /// Token that fills the draft slots after the first.
    pub noise_token_id: u32,
    /// Backbone layers whose inputs are captured; ascending.
    pub target_layers: Vec<usize>,
    /// Rank of the Markov head.
    pub markov_rank: usize,
    /// Routed experts of a stage.
    pub experts: usize,
    /// Routed experts that a draft token visits.
    pub experts_per_token: usize,
}

/// Vision tower and image preparation.
#[derive(Debug, Clone, PartialEq)]
pub struct Vision {
    /// Transformer blocks.
    pub layers: usize,
    /// Width.
    pub hidden_size: usize,
    /// Attention heads.
    pub heads: usize,
    /// Inner width of the MLP.
    pub intermediate_size: usize,
    /// Side of a patch, pixels.
    pub patch_pixels: usize,
    /// Rotary base.
    pub rope_base: f64,
    /// Patches merged into one token, per axis.
    pub downsample: usize,
    /// Longest span of one image, markers included.
    pub max_image_tokens: usize,
    /// Pictures smaller than this are enlarged.
    pub min_pixels: u64,
    /// Widest allowed width over height, if limited.
    pub max_wh_ratio: Option<f64>,
}

/// The release's configuration, field for field.
const V41_FLASH: &str = include_str!("v4.1-flash.json");

impl Config {
    /// The names [`Config::named`] knows.
    pub const NAMES: &[&str] = &["v4.1-flash"];

    /// A built-in configuration, for planning without a checkpoint.
    ///
    /// # Errors
    /// When no configuration has that name.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "v4.1-flash" => Self::from_json(V41_FLASH.as_bytes()),
            _ => Err(Error::argument(
                "--model",
                format!("no built-in model {name:?}; known: {}", Self::NAMES.join(", ")),
            )),
        }
    }

    /// Reads a `config.json`, nested (`text_config`, `vision_config`, `quantization_config`) or
    /// flat, in the names of either of the publisher's two files, and checks every constraint.
    ///
    /// # Errors
    /// One line naming the key, and the layer where one is at fault.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let config = super::config_read::read(bytes)?;
        super::checks::check(&config)?;
        Ok(config)
    }

    /// The number of draft tokens to use for a wish: `None` takes the trained block size, 0 turns
    /// drafting off.
    ///
    /// # Errors
    /// A negative wish, one above the block size, or a wish without draft stages.
    pub fn draft_tokens(&self, wish: Option<i64>) -> Result<usize> {
        let refuse = |problem: String| Err(Error::argument("draft tokens", problem));
        match (&self.dspark, wish) {
            (_, Some(0)) | (None, None) => Ok(0),
            (None, Some(asked)) => refuse(format!(
                "{asked} asked for, but this checkpoint has no draft stages \
                 (num_nextn_predict_layers is 0); use 0"
            )),
            (Some(dspark), None) => Ok(dspark.block_size),
            (Some(dspark), Some(asked)) => match usize::try_from(asked) {
                Ok(tokens) if tokens <= dspark.block_size => Ok(tokens),
                _ => refuse(format!(
                    "{asked} asked for, the checkpoint drafts blocks of {block}; use 0 to {block}",
                    block = dspark.block_size
                )),
            },
        }
    }
}
