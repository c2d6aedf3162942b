//! From the JSON of `config.json` to [`Config`], both layouts and both spellings.

use serde_json::{Map, Value, json};

use super::config::{
    Attention, Compression, Config, Dspark, Engram, HyperConnections, Indexer, Moe, Rope, Vision,
};
use super::config_keys::Keys;
use crate::error::{Error, Result};

/// Reads without checking how fields fit together; `checks` does that.
pub(super) fn read(bytes: &[u8]) -> Result<Config> {
    let root: Value = serde_json::from_slice(bytes).map_err(|error| {
        Error::config("config.json", format!("not JSON: {error}; take the release's"))
    })?;
    let Value::Object(root) = &root else {
        return Err(Error::config("config.json", "must be a JSON object; take the release's"));
    };
    let mut objects = Vec::new();
    objects.extend(nested(root, "text_config")?);
    objects.push(root);
    let keys = Keys::new(objects);
    refuse_other_models(root, &keys)?;
    refuse_other_forms(&keys)?;
    let layers = keys.count(&["num_hidden_layers", "n_layers"])?;
    let stages = keys.count(&["num_nextn_predict_layers", "n_mtp_layers"])?;
    let rope = rope(root, &keys)?;
    let vision = vision(root)?;
    Ok(Config {
        vocab_size: keys.count(&["vocab_size"])?,
        hidden_size: keys.count(&["hidden_size", "dim"])?,
        layers,
        norm_eps: keys.real(&["rms_norm_eps", "norm_eps"])? as f32,
        max_position_tokens: match keys.count_if_any(&["max_position_embeddings"])? {
            Some(tokens) => tokens,
            None => (rope.original_tokens as f64 * rope.factor) as usize,
        },
        bos_token_id: keys.token_if_any(&["bos_token_id"])?.unwrap_or(BOS),
        eos_token_id: keys.token_if_any(&["eos_token_id"])?.unwrap_or(EOS),
        pad_token_id: keys.token_if_any(&["pad_token_id"])?.unwrap_or(PAD),
        image_token_id: keys.token_if_any(&["image_token_id"])?,
        attention: attention(&keys)?,
        rope,
        compression: compression(&keys, layers, stages)?,
        indexer: Indexer {
            heads: keys.count(&["index_n_heads"])?,
            head_dim: keys.count(&["index_head_dim"])?,
            topk: keys.count(&["index_topk"])?,
        },
        hyper: HyperConnections {
            streams: keys.count(&["hc_mult"])?,
            sinkhorn_iterations: keys.count(&["hc_sinkhorn_iters"])?,
            eps: keys.real(&["hc_eps"])? as f32,
        },
        moe: moe(&keys)?,
        engram: engram(&keys)?,
        dspark: dspark(&keys, stages)?,
        vision,
        weight_block: quantisation(root)?,
    })
}

/// The flat file has no special token ids; the family's tokenizers all place them here.
const BOS: u32 = 0;
const EOS: u32 = 1;
const PAD: u32 = 2;

fn nested<'a>(root: &'a Map<String, Value>, key: &str) -> Result<Option<&'a Map<String, Value>>> {
    match root.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(Error::config(key, "must be an object")),
    }
}

/// Model types and keys that belong to a relative of this model.
fn refuse_other_models(root: &Map<String, Value>, keys: &Keys<'_>) -> Result<()> {
    let outer = Keys::new(vec![root]);
    let types = ["deepseek_v41", "deepseek_v4.1", "deepseek_v41_text", "deepseek_v4.1_text"];
    outer.fixed(&["model_type"], &types.map(Value::from))?;
    if let Some(text) = nested(root, "text_config")? {
        Keys::new(vec![text]).fixed(&["model_type"], &types.map(Value::from))?;
    }
    if let Some((name, value)) = outer.find(&["architectures"])? {
        let known = json!("DeepseekV41ForCausalLM");
        if !value.as_array().is_some_and(|list| list.contains(&known)) {
            return Err(Error::config(name, format!("{value} does not list {known}")));
        }
    }
    for name in ["num_hash_layers", "n_hash_layers"] {
        keys.fixed(&[name], &[json!(0)]).map_err(|_| {
            Error::config(name, "layers routed by token id exist only in V4; remove it or set 0")
        })?;
    }
    match keys.names().find(|name| name.starts_with("hc_head")) {
        None => Ok(()),
        Some(name) => Err(Error::config(name, "a learned head mix exists only in V4; remove it")),
    }
}

/// Keys that V4.1 has in one form only.
fn refuse_other_forms(keys: &Keys<'_>) -> Result<()> {
    keys.fixed(&["num_key_value_heads"], &[json!(1)])?;
    keys.fixed(&["n_shared_experts"], &[json!(1)])?;
    keys.fixed(&["scoring_func", "score_func"], &[json!("sqrtsoftplus")])?;
    keys.fixed(&["topk_method"], &[json!("noaux_tc")])?;
    keys.fixed(&["norm_topk_prob"], &[json!(true)])?;
    keys.fixed(&["n_group"], &[json!(1)])?;
    keys.fixed(&["topk_group"], &[json!(1)])?;
    keys.fixed(&["hidden_act"], &[json!("silu")])?;
    keys.fixed(&["attention_bias"], &[json!(false)])?;
    keys.fixed(&["tie_word_embeddings"], &[json!(false)])
}

fn attention(keys: &Keys<'_>) -> Result<Attention> {
    Ok(Attention {
        heads: keys.count(&["num_attention_heads", "n_heads"])?,
        head_dim: keys.count(&["head_dim"])?,
        rope_dim: keys.count(&["qk_rope_head_dim", "rope_head_dim"])?,
        q_lora_rank: keys.count(&["q_lora_rank"])?,
        o_groups: keys.count(&["o_groups"])?,
        o_lora_rank: keys.count(&["o_lora_rank"])?,
        window_tokens: keys.count(&["sliding_window", "window_size"])?,
    })
}

fn rope(root: &Map<String, Value>, keys: &Keys<'_>) -> Result<Rope> {
    let text = nested(root, "text_config")?;
    let scaling = match text {
        Some(text) if text.contains_key("rope_scaling") => nested(text, "rope_scaling")?,
        _ => nested(root, "rope_scaling")?,
    };
    let yarn = Keys::new(vec![scaling.unwrap_or(root)]);
    if scaling.is_some() {
        yarn.fixed(&["rope_type", "type"], &[json!("yarn")])?;
    }
    Ok(Rope {
        base: keys.real(&["rope_theta"])?,
        compressed_base: keys.real(&["compress_rope_theta"])?,
        factor: yarn.real(&["factor", "rope_factor"])?,
        beta_fast: yarn.real(&["beta_fast"])?,
        beta_slow: yarn.real(&["beta_slow"])?,
        original_tokens: yarn.count(&["original_max_position_embeddings", "original_seq_len"])?,
    })
}

/// The file lists one ratio per backbone layer and then one per draft stage. The draft's entries
/// are checked here because they carry nothing else.
fn compression(keys: &Keys<'_>, layers: usize, stages: usize) -> Result<Compression> {
    const RATIOS: &str = "compress_ratios";
    let mut ratios = keys.counts(&[RATIOS])?;
    if ratios.len() != layers + stages {
        let (entries, first) = (ratios.len(), ratios.len().min(layers + stages));
        return Err(Error::config_at(
            RATIOS,
            first,
            format!(
                "{entries} entries for {layers} backbone layers and {stages} draft stages; \
                 give {}",
                layers + stages
            ),
        ));
    }
    if let Some(stage) = ratios[layers..].iter().position(|ratio| *ratio != 0) {
        let problem = format!(
            "draft stage {stage} has ratio {}; drafts do not compress",
            ratios[layers + stage]
        );
        return Err(Error::config_at(RATIOS, layers + stage, problem));
    }
    ratios.truncate(layers);
    Ok(Compression {
        ratios,
        kv_sources: keys.counts(&["kv_source_layer_ids", "kv_source_layers"])?,
        index_sources: keys.counts(&["index_source_layer_ids", "index_source_layers"])?,
        candidate_source: keys
            .layer_or_none(&["candidate_source_layer_id", "candidate_source_layer"])?,
        candidate_blocks: keys.count(&["candidate_topk_blocks"])?,
        candidate_block_entries: keys.count(&["candidate_block_size"])?,
    })
}

fn moe(keys: &Keys<'_>) -> Result<Moe> {
    let limit = keys.real_if_any(&["swiglu_limit"])?.unwrap_or(0.0);
    Ok(Moe {
        experts: keys.count(&["n_routed_experts"])?,
        experts_per_token: keys.count(&["num_experts_per_tok", "n_activated_experts"])?,
        intermediate_size: keys.count(&["moe_intermediate_size", "moe_inter_dim"])?,
        route_scale: keys.real(&["routed_scaling_factor", "route_scale"])? as f32,
        gate_temperature: keys.real_if_any(&["gate_temp"])?.unwrap_or(1.0) as f32,
        swiglu_limit: (limit != 0.0).then_some(limit as f32),
    })
}

fn engram(keys: &Keys<'_>) -> Result<Option<Engram>> {
    let layers = keys.counts(&["engram_layer_ids"])?;
    if layers.is_empty() {
        return Ok(None);
    }
    let pad = &["engram_pad_token_id", "engram_pad_id"];
    Ok(Some(Engram {
        layers,
        table_rows: keys
            .counts(&["engram_num_embeddings"])?
            .into_iter()
            .map(|rows| rows as u64)
            .collect(),
        max_ngram: keys.count(&["engram_max_ngram_size"])?,
        heads: keys.count(&["engram_n_heads"])?,
        head_dim: keys.count(&["engram_head_dim"])?,
        bucket_base: keys.count(&["engram_vocab_size"])? as u64,
        pad_token_id: keys
            .token_if_any(pad)?
            .ok_or_else(|| Error::config(pad[0], "missing (also read as engram_pad_id); add it"))?,
        compressed_vocab_size: keys.count(&["engram_compressed_vocab_size"])? as u64,
    }))
}

fn dspark(keys: &Keys<'_>, stages: usize) -> Result<Option<Dspark>> {
    if stages == 0 {
        return Ok(None);
    }
    let noise = "dspark_noise_token_id";
    Ok(Some(Dspark {
        stages,
        block_size: keys.count(&["dspark_block_size"])?,
        noise_token_id: keys
            .token_if_any(&[noise])?
            .ok_or_else(|| Error::config(noise, "missing; add it"))?,
        target_layers: keys.counts(&["dspark_target_layer_ids"])?,
        markov_rank: keys.count(&["dspark_markov_rank"])?,
        experts: keys.count(&["dspark_n_routed_experts"])?,
        experts_per_token: keys
            .count(&["dspark_num_experts_per_tok", "dspark_n_activated_experts"])?,
    }))
}

/// The tower's keys stand in `vision_config` under short names, or at the top with a prefix. The
/// short names mean the text model at the top, so each place is read in its own spelling only.
fn vision(root: &Map<String, Value>) -> Result<Option<Vision>> {
    let nested = nested(root, "vision_config")?;
    if nested.is_none() && !root.contains_key("vision_n_layers") {
        return Ok(None);
    }
    let keys = Keys::new(vec![nested.unwrap_or(root)]);
    let pick = |short: &'static str, flat: &'static str| {
        if nested.is_some() { [short] } else { [flat] }
    };
    let read = || {
        Ok(Vision {
            layers: keys.count(&pick("num_hidden_layers", "vision_n_layers"))?,
            hidden_size: keys.count(&pick("hidden_size", "vision_dim"))?,
            heads: keys.count(&pick("num_attention_heads", "vision_n_heads"))?,
            intermediate_size: keys.count(&pick("intermediate_size", "vision_inter_dim"))?,
            patch_pixels: keys.count(&pick("patch_size", "vision_patch_size"))?,
            rope_base: keys.real(&pick("rope_theta", "vision_rope_theta"))?,
            downsample: keys.count(&pick("downsample_ratio", "vision_downsample_ratio"))?,
            max_image_tokens: keys.count(&pick("max_image_tokens", "vision_max_n_token"))?,
            min_pixels: keys.count(&pick("min_pixels", "vision_min_pixels"))? as u64,
            max_wh_ratio: keys.real_if_any(&pick("max_wh_ratio", "vision_max_wh_ratio"))?,
        })
    };
    // The short names alone would be taken for the text model's.
    read().map(Some).map_err(|error| match error {
        Error::Config { key, layer, problem } if nested.is_some() => {
            Error::Config { key: format!("vision_config.{key}"), layer, problem }
        }
        error => error,
    })
}

/// The scale block must be stated: a wrong guess rescales every weight without an error.
fn quantisation(root: &Map<String, Value>) -> Result<[usize; 2]> {
    let nested = nested(root, "quantization_config")?;
    let mut objects: Vec<_> = nested.into_iter().collect();
    objects.push(root);
    let keys = Keys::new(objects);
    keys.fixed(&["quant_method"], &[json!("fp8")])?;
    keys.fixed(&["activation_scheme"], &[json!("dynamic")])?;
    keys.fixed(&["scale_fmt"], &[json!("ue8m0")])?;
    keys.fixed(&["expert_dtype"], &[json!("fp4")])?;
    let block = keys.counts(&["weight_block_size"])?;
    <[usize; 2]>::try_from(block).map_err(|block| {
        Error::config("weight_block_size", format!("{block:?} must be two sizes, [32, 32]"))
    })
}
