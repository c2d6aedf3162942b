//! An estimate of the memory a step works in.
//!
//! Every buffer is counted as if all lived at once, so the estimate errs high; a loader that reuses
//! them stays below it.

use super::rank::{Item, add};
use super::request::Limits;
use super::score::ScorePieces;
use crate::error::Result;
use crate::kv::WINDOW_PAGE_TOKENS;
use crate::model::v41::Config;
use crate::model::v41::ledger::CacheLedger;

/// Driver context, kernel images, captured graphs and collective buffers. Not computed: a round
/// figure.
pub const RUNTIME_BYTES: u64 = 2 << 30;

const BF16: u64 = 2;
const F32: u64 = 4;
const I32: u64 = 4;

/// The buffers of a step on one rank.
///
/// # Errors
/// A score budget below one row.
pub fn workspace(config: &Config, limits: &Limits) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let tokens = limits.step_tokens;
    add(&mut items, "residual streams", tokens * streams_bytes(config));
    add(&mut items, "attention", tokens * attention_bytes(config));
    add(&mut items, "window entries of the step", window_bytes(config, tokens));
    add(&mut items, "selection", tokens * selection_bytes(config));
    let entries = config
        .compression
        .kv_sources
        .iter()
        .map(|layer| limits.context_tokens / config.compression.ratios[*layer] as u64);
    let visible = entries.max().unwrap_or(0);
    let scores = ScorePieces::new(tokens, visible, limits.score_budget_bytes)?;
    add(&mut items, "index scores", scores.piece_bytes);
    add(&mut items, "experts", tokens * expert_bytes(config));
    add(&mut items, "Engram rows", tokens * engram_bytes(config));
    let vocab = config.vocab_size as u64;
    let verified = limits.sequences * (1 + limits.draft_tokens);
    add(&mut items, "logits", verified * vocab * F32);
    add(&mut items, "draft distributions", limits.sequences * limits.draft_tokens * vocab * F32);
    if limits.pictures > 0 {
        add(&mut items, "vision tower", vision_bytes(config));
        add(&mut items, "picture rows", limits.pictures * picture_bytes(config));
    }
    add(&mut items, "runtime reserve", RUNTIME_BYTES);
    items.retain(|item| item.bytes > 0);
    Ok(items)
}

/// Streams in and out, the sub-layer's input and f32 output, and what the draft captures.
fn streams_bytes(config: &Config) -> u64 {
    let hidden = config.hidden_size as u64;
    let captures = config.dspark.as_ref().map_or(0, |dspark| dspark.target_layers.len() as u64);
    let streams = config.hyper.streams as u64 * hidden * BF16;
    2 * streams + hidden * (BF16 + F32) + captures * hidden * BF16
}

/// Queries and outputs of all heads, the low-rank vectors, and f32 rows of a compressor: every rank
/// computes the whole attention.
fn attention_bytes(config: &Config) -> u64 {
    let attention = &config.attention;
    let head_dim = attention.head_dim as u64;
    let heads = attention.heads as u64 * head_dim * BF16;
    let groups = (attention.o_groups * attention.o_lora_rank) as u64 * BF16;
    let low_rank = (attention.q_lora_rank as u64 + head_dim) * BF16;
    2 * heads + groups + low_rank + 2 * head_dim * F32
}

/// Entries of the step's own tokens in every layer's window cache.
fn window_bytes(config: &Config, tokens: u64) -> u64 {
    let caches = CacheLedger::of(config);
    let positions = tokens.div_ceil(WINDOW_PAGE_TOKENS) * WINDOW_PAGE_TOKENS;
    positions * caches.window_layers * caches.window_entry_bytes
}

/// Index queries, selected entries and candidate blocks.
fn selection_bytes(config: &Config) -> u64 {
    let queries = (config.indexer.heads * config.indexer.head_dim) as u64 * BF16;
    let blocks = config
        .compression
        .candidate_source
        .map_or(0, |_| config.compression.candidate_blocks as u64);
    queries + (config.indexer.topk as u64 + blocks) * I32
}

/// Rows of the visited experts: gate and up, the quantised product, the output. All rows may visit
/// experts of one rank.
fn expert_bytes(config: &Config) -> u64 {
    let (inner, hidden) = (config.moe.intermediate_size as u64, config.hidden_size as u64);
    let rows = config.moe.experts_per_token as u64 + 1;
    let quantised = |width: u64| width + width.div_ceil(32);
    quantised(hidden) + rows * (2 * inner * BF16 + quantised(inner) + hidden * BF16)
}

/// Rows of all tables, gathered at the start of a step, and one projection.
fn engram_bytes(config: &Config) -> u64 {
    let Some(engram) = &config.engram else { return 0 };
    let rows = engram.width() as u64 * 33 / 32 * engram.layers.len() as u64;
    rows + (config.hyper.streams as u64 + 1) * config.hidden_size as u64 * BF16
}

/// Rows of the largest picture, which are kept until its span is computed.
fn picture_bytes(config: &Config) -> u64 {
    let tokens = config.vision.as_ref().map_or(0, |vision| vision.max_image_tokens as u64);
    tokens * config.hidden_size as u64 * BF16
}

/// The tower at work on one picture of the largest size.
fn vision_bytes(config: &Config) -> u64 {
    let Some(vision) = &config.vision else { return 0 };
    let cell = (vision.downsample * vision.downsample) as u64;
    let patches = vision.max_image_tokens as u64 * cell;
    let (width, inner) = (vision.hidden_size as u64, vision.intermediate_size as u64);
    let pixels = 3 * (vision.patch_pixels * vision.patch_pixels) as u64;
    patches * (pixels + 6 * width + 3 * inner) * BF16
}
