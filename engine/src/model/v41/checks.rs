//! Every constraint between fields of a configuration, each with its own message.

use super::config::Config;
use super::engram_hash;
use super::vision_sizes::picture_limits;
use crate::error::{Error, Result};

/// Checks in an order in which later ones may rely on earlier ones.
pub(super) fn check(config: &Config) -> Result<()> {
    sizes(config)?;
    numbers(config)?;
    widths(config)?;
    experts(config)?;
    layer_lists(config)?;
    ratios(config)?;
    sources(config)?;
    candidates(config)?;
    rotary(config)?;
    token_ids(config)?;
    engram(config)?;
    vision(config)
}

/// Bounds no real model reaches and under which every byte count fits 64 bits.
fn sizes(config: &Config) -> Result<()> {
    const WIDTH: usize = 1 << 18;
    const COUNT: usize = 1 << 12;
    const LAYERS: usize = 1 << 9;
    let attention = &config.attention;
    let mut limits = vec![
        ("vocab_size", config.vocab_size, 1 << 24),
        ("hidden_size", config.hidden_size, WIDTH),
        ("num_hidden_layers", config.layers, LAYERS),
        ("max_position_embeddings", config.max_position_tokens, 1 << 30),
        ("num_attention_heads", attention.heads, COUNT),
        ("head_dim", attention.head_dim, COUNT),
        ("qk_rope_head_dim", attention.rope_dim, COUNT),
        ("q_lora_rank", attention.q_lora_rank, WIDTH),
        ("o_groups", attention.o_groups, COUNT),
        ("o_lora_rank", attention.o_lora_rank, WIDTH),
        ("sliding_window", attention.window_tokens, WIDTH),
        ("index_n_heads", config.indexer.heads, COUNT),
        ("index_head_dim", config.indexer.head_dim, COUNT),
        ("index_topk", config.indexer.topk, WIDTH),
        ("candidate_topk_blocks", config.compression.candidate_blocks, WIDTH),
        ("candidate_block_size", config.compression.candidate_block_entries, WIDTH),
        ("hc_sinkhorn_iters", config.hyper.sinkhorn_iterations, COUNT),
        ("n_routed_experts", config.moe.experts, COUNT),
        ("moe_intermediate_size", config.moe.intermediate_size, WIDTH),
    ];
    if let Some(engram) = &config.engram {
        limits.extend([
            ("engram_n_heads", engram.heads, 256),
            ("engram_head_dim", engram.head_dim, COUNT),
            ("engram_vocab_size", engram.bucket_base as usize, 1 << 31),
            ("engram_compressed_vocab_size", engram.compressed_vocab_size as usize, 1 << 24),
        ]);
    }
    if let Some(dspark) = &config.dspark {
        limits.extend([
            ("num_nextn_predict_layers", dspark.stages, LAYERS),
            ("dspark_block_size", dspark.block_size, COUNT),
            ("dspark_markov_rank", dspark.markov_rank, WIDTH),
            ("dspark_n_routed_experts", dspark.experts, COUNT),
        ]);
    }
    match limits.into_iter().find(|(_, size, limit)| *size == 0 || size > limit) {
        None => Ok(()),
        Some((key, size, limit)) => {
            Err(Error::config(key, format!("{size} is outside 1 to {limit}")))
        }
    }
}

/// Numbers that must be positive, and the sizes this model has one value of.
fn numbers(config: &Config) -> Result<()> {
    let positive = [
        ("rms_norm_eps", f64::from(config.norm_eps)),
        ("hc_eps", f64::from(config.hyper.eps)),
        ("routed_scaling_factor", f64::from(config.moe.route_scale)),
        ("gate_temp", f64::from(config.moe.gate_temperature)),
        ("swiglu_limit", f64::from(config.moe.swiglu_limit.unwrap_or(1.0))),
        ("rope_scaling.factor", config.rope.factor),
    ];
    if let Some((key, _)) = positive.iter().find(|(_, number)| *number <= 0.0) {
        return Err(Error::config(key, "must be above zero in single precision"));
    }
    if config.hyper.streams != 4 {
        let problem = format!("{} residual streams; V4.1 has 4", config.hyper.streams);
        return Err(Error::config("hc_mult", problem));
    }
    if config.weight_block != SCALE_BLOCK {
        let [rows, columns] = config.weight_block;
        let problem = format!("[{rows}, {columns}] is not V4.1's [32, 32] (V4 has [128, 128])");
        return Err(Error::config("weight_block_size", problem));
    }
    Ok(())
}

const SCALE_BLOCK: [usize; 2] = [32, 32];

/// Inner widths of quantised products are whole scale blocks; heads split evenly into groups.
fn widths(config: &Config) -> Result<()> {
    let attention = &config.attention;
    if !attention.heads.is_multiple_of(attention.o_groups) {
        let problem =
            format!("{} heads do not divide into {} groups", attention.heads, attention.o_groups);
        return Err(Error::config("o_groups", problem));
    }
    let group = attention.heads / attention.o_groups * attention.head_dim;
    let mut blocks = vec![
        ("hidden_size", config.hidden_size),
        ("q_lora_rank", attention.q_lora_rank),
        ("moe_intermediate_size", config.moe.intermediate_size),
        ("head_dim", attention.head_dim),
        ("index_head_dim", config.indexer.head_dim),
        ("num_attention_heads * head_dim / o_groups", group),
        ("o_groups * o_lora_rank", attention.o_groups * attention.o_lora_rank),
    ];
    if let Some(engram) = &config.engram {
        blocks.push(("engram_head_dim", engram.head_dim));
    }
    match blocks.into_iter().find(|(_, width)| !width.is_multiple_of(32)) {
        None => Ok(()),
        Some((key, width)) => {
            Err(Error::config(key, format!("{width} is not a multiple of the scale block, 32")))
        }
    }
}

/// REF skips the normalisation of a single routing weight, so one expert per token is another
/// model.
fn experts(config: &Config) -> Result<()> {
    let chosen = |key: &str, experts: usize, per_token: usize| {
        if per_token < 2 || per_token > experts {
            let problem = format!("{per_token} of {experts} experts; choose 2 to {experts}");
            return Err(Error::config(key, problem));
        }
        Ok(())
    };
    chosen("num_experts_per_tok", config.moe.experts, config.moe.experts_per_token)?;
    match &config.dspark {
        None => Ok(()),
        Some(dspark) => {
            chosen("dspark_num_experts_per_tok", dspark.experts, dspark.experts_per_token)
        }
    }
}

/// Lists of layers name existing layers in ascending order.
fn layer_lists(config: &Config) -> Result<()> {
    let mut lists = vec![
        ("kv_source_layer_ids", &config.compression.kv_sources),
        ("index_source_layer_ids", &config.compression.index_sources),
    ];
    lists.extend(config.engram.as_ref().map(|engram| ("engram_layer_ids", &engram.layers)));
    lists.extend(
        config.dspark.as_ref().map(|dspark| ("dspark_target_layer_ids", &dspark.target_layers)),
    );
    for (key, list) in lists {
        if let Some(layer) = list.iter().find(|layer| **layer >= config.layers) {
            let problem = format!("there are only {} backbone layers", config.layers);
            return Err(Error::config_at(key, *layer, problem));
        }
        if let Some(pair) = list.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::config_at(key, pair[1], "list layers once, in ascending order"));
        }
    }
    if config.dspark.as_ref().is_some_and(|dspark| dspark.target_layers.is_empty()) {
        return Err(Error::config("dspark_target_layer_ids", "the draft needs a captured layer"));
    }
    Ok(())
}

fn ratios(config: &Config) -> Result<()> {
    match config.compression.ratios.iter().enumerate().find(|(_, ratio)| **ratio > 2) {
        None => Ok(()),
        Some((layer, ratio)) => {
            let v4 = if matches!(ratio, 4 | 128) { " (V4 has 4 and 128)" } else { "" };
            let problem = format!("ratio {ratio} is not one of 0, 1, 2{v4}");
            Err(Error::config_at("compress_ratios", layer, problem))
        }
    }
}

/// Every compressing layer finds a cache of its own ratio at or below it, and a selection of it.
fn sources(config: &Config) -> Result<()> {
    const KV: &str = "kv_source_layer_ids";
    const INDEX: &str = "index_source_layer_ids";
    let compression = &config.compression;
    for (key, list) in [(KV, &compression.kv_sources), (INDEX, &compression.index_sources)] {
        if let Some(layer) = list.iter().find(|layer| compression.ratios[**layer] == 0) {
            let problem = "the layer has compression ratio 0 and cannot be a source";
            return Err(Error::config_at(key, *layer, problem));
        }
    }
    if let Some(layer) =
        compression.kv_sources.iter().find(|layer| !compression.index_sources.contains(layer))
    {
        let problem = format!("the layer is in {KV} and must be listed here too");
        return Err(Error::config_at(INDEX, *layer, problem));
    }
    for (layer, topology) in config.topology().layers.iter().enumerate() {
        if topology.ratio == 0 {
            continue;
        }
        let Some(source) = topology.kv_source else {
            let problem = format!("ratio {} but no source at or below the layer", topology.ratio);
            return Err(Error::config_at(KV, layer, problem));
        };
        let ratio = compression.ratios[source];
        if ratio != topology.ratio {
            let problem = format!(
                "ratio {} but its source, layer {source}, has ratio {ratio}; the first layer of \
                 each run of a ratio must be a source",
                topology.ratio
            );
            return Err(Error::config_at(KV, layer, problem));
        }
    }
    Ok(())
}

fn candidates(config: &Config) -> Result<()> {
    const KEY: &str = "candidate_source_layer_id";
    let compression = &config.compression;
    let Some(source) = compression.candidate_source else { return Ok(()) };
    if !compression.index_sources.contains(&source) {
        let problem = "the layer is not in index_source_layer_ids; use one of those, or -1";
        return Err(Error::config_at(KEY, source, problem));
    }
    let topology = config.topology();
    let cache = topology.layers[source].kv_source;
    if let Some(layer) = compression
        .index_sources
        .iter()
        .find(|layer| **layer > source && topology.layers[**layer].kv_source != cache)
    {
        let problem =
            format!("the layer selects among candidates of layer {source} but reads another cache");
        return Err(Error::config_at(KEY, *layer, problem));
    }
    let block = compression.candidate_block_entries;
    let sure = compression.candidate_blocks * block - (block - 1);
    if sure < config.indexer.topk {
        let problem = format!(
            "{} blocks of {block} hold {sure} entries for sure, fewer than index_topk {}",
            compression.candidate_blocks, config.indexer.topk
        );
        return Err(Error::config("candidate_topk_blocks", problem));
    }
    Ok(())
}

fn rotary(config: &Config) -> Result<()> {
    const KEY: &str = "qk_rope_head_dim";
    let (rope, dim) = (&config.rope, config.attention.rope_dim);
    if !dim.is_multiple_of(2) {
        return Err(Error::config(KEY, format!("{dim} is odd; dims rotate in pairs")));
    }
    for (key, width) in
        [("head_dim", config.attention.head_dim), ("index_head_dim", config.indexer.head_dim)]
    {
        if dim > width {
            return Err(Error::config(KEY, format!("{dim} rotating dims exceed {key} {width}")));
        }
    }
    for (key, base) in [("rope_theta", rope.base), ("compress_rope_theta", rope.compressed_base)] {
        if base <= 1.0 {
            return Err(Error::config(key, format!("{base} must exceed 1")));
        }
    }
    const LENGTH: &str = "rope_scaling.original_max_position_embeddings";
    if rope.original_tokens == 0 {
        return Err(Error::config(LENGTH, "0 would switch YaRN off; V4.1 has it"));
    }
    if rope.beta_slow <= 0.0 || rope.beta_fast <= rope.beta_slow {
        let problem =
            format!("{} must exceed beta_slow {} above 0", rope.beta_fast, rope.beta_slow);
        return Err(Error::config("rope_scaling.beta_fast", problem));
    }
    let ramp = rope.ramp(dim);
    if ramp.low >= ramp.high {
        let problem = format!(
            "YaRN's ramp runs from pair {} to {} of {}; it must rise inside the pairs",
            ramp.low,
            ramp.high,
            dim / 2
        );
        return Err(Error::config(LENGTH, problem));
    }
    Ok(())
}

fn token_ids(config: &Config) -> Result<()> {
    let vocab = config.vocab_size;
    let mut ids = vec![
        ("bos_token_id", config.bos_token_id),
        ("eos_token_id", config.eos_token_id),
        ("pad_token_id", config.pad_token_id),
    ];
    ids.extend(config.image_token_id.map(|id| ("image_token_id", id)));
    ids.extend(config.dspark.as_ref().map(|d| ("dspark_noise_token_id", d.noise_token_id)));
    ids.extend(config.engram.as_ref().map(|e| ("engram_pad_token_id", e.pad_token_id)));
    match ids.into_iter().find(|(_, id)| *id as usize >= vocab) {
        None => Ok(()),
        Some((key, id)) => Err(Error::config(key, format!("{id} is not below vocab_size {vocab}"))),
    }
}

/// The tables have no slack rows, so their sizes prove that the prime walk is the publisher's.
fn engram(config: &Config) -> Result<()> {
    const ROWS: &str = "engram_num_embeddings";
    let Some(engram) = &config.engram else { return Ok(()) };
    if engram.layers[0] == 0 {
        return Err(Error::config_at("engram_layer_ids", 0, "rows are added from layer 1 on"));
    }
    if !(2..=16).contains(&engram.max_ngram) {
        let problem = format!("{} is outside 2 to 16", engram.max_ngram);
        return Err(Error::config("engram_max_ngram_size", problem));
    }
    if engram.compressed_vocab_size as usize > config.vocab_size {
        let problem =
            format!("{} exceeds vocab_size {}", engram.compressed_vocab_size, config.vocab_size);
        return Err(Error::config("engram_compressed_vocab_size", problem));
    }
    if engram.table_rows.len() != engram.layers.len() {
        let (rows, layers) = (engram.table_rows.len(), engram.layers.len());
        return Err(Error::config(ROWS, format!("{rows} sizes for {layers} Engram layers")));
    }
    // Bounds the walk over primes before it is taken.
    const COLUMNS: usize = 4096;
    let columns = engram.columns() * engram.layers.len();
    if columns > COLUMNS {
        let problem = format!("{columns} hash columns over all layers exceed {COLUMNS}");
        return Err(Error::config("engram_n_heads", problem));
    }
    if engram.columns() as u64 * engram.bucket_base >= 1 << 32 {
        let problem = format!("{} buckets exceed 32-bit row numbers", engram.columns());
        return Err(Error::config("engram_vocab_size", problem));
    }
    for ((layer, rows), hash) in
        engram.layers.iter().zip(&engram.table_rows).zip(engram_hash::hashes(engram))
    {
        if *rows != hash.table_rows {
            let problem = format!(
                "{rows} rows, but the {} primes from {} sum to {}",
                engram.columns(),
                hash.primes[0],
                hash.table_rows
            );
            return Err(Error::config_at(ROWS, *layer, problem));
        }
        if hash.table_rows >= 1 << 32 {
            let problem = format!("{rows} rows exceed 32-bit row numbers");
            return Err(Error::config_at(ROWS, *layer, problem));
        }
    }
    Ok(())
}

fn vision(config: &Config) -> Result<()> {
    let Some(vision) = &config.vision else { return Ok(()) };
    let limits = [
        ("vision_config.num_hidden_layers", vision.layers, 1 << 9),
        ("vision_config.hidden_size", vision.hidden_size, 1 << 16),
        ("vision_config.num_attention_heads", vision.heads, 1 << 12),
        ("vision_config.intermediate_size", vision.intermediate_size, 1 << 18),
        ("vision_config.patch_size", vision.patch_pixels, 1 << 8),
        ("vision_config.downsample_ratio", vision.downsample, 1 << 4),
        ("vision_config.max_image_tokens", vision.max_image_tokens, 1 << 20),
    ];
    if let Some((key, size, limit)) = limits.into_iter().find(|(_, s, limit)| *s == 0 || s > limit)
    {
        return Err(Error::config(key, format!("{size} is outside 1 to {limit}")));
    }
    if !vision.hidden_size.is_multiple_of(4 * vision.heads) {
        let problem = format!(
            "{} does not divide into {} heads of dims that rotate in two axes",
            vision.hidden_size, vision.heads
        );
        return Err(Error::config("vision_config.hidden_size", problem));
    }
    if vision.rope_base <= 1.0 {
        return Err(Error::config("vision_config.rope_theta", "must exceed 1"));
    }
    if config.image_token_id.is_none() {
        return Err(Error::config("image_token_id", "missing; a vision tower needs it"));
    }
    let limits = picture_limits(config)?;
    limits.check().map_err(|error| Error::config("vision_config", error.to_string()))
}
