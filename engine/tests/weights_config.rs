//! Configurations: both layouts, both spellings, and one error for each thing that can be wrong.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tandem_engine::Error;
use tandem_engine::model::v41::Config;

const RELEASE: &str = include_str!("../src/model/v41/v4.1-flash.json");
const DEMO: &str = include_str!("../cli/demo/config.json");

fn release() -> Value {
    serde_json::from_str(RELEASE).unwrap()
}

fn parse(config: &Value) -> Result<Config, Error> {
    Config::from_json(config.to_string().as_bytes())
}

/// The nested file's keys moved to the top, the tower's with their flat names.
fn flat() -> Map<String, Value> {
    let mut root = release().as_object().unwrap().clone();
    let text = root.remove("text_config").unwrap();
    let vision = root.remove("vision_config").unwrap();
    let quantisation = root.remove("quantization_config").unwrap();
    for object in [&text, &quantisation] {
        for (key, value) in object.as_object().unwrap() {
            root.entry(key.clone()).or_insert(value.clone());
        }
    }
    for (short, name) in [
        ("num_hidden_layers", "vision_n_layers"),
        ("hidden_size", "vision_dim"),
        ("num_attention_heads", "vision_n_heads"),
        ("intermediate_size", "vision_inter_dim"),
        ("patch_size", "vision_patch_size"),
        ("rope_theta", "vision_rope_theta"),
        ("downsample_ratio", "vision_downsample_ratio"),
        ("max_image_tokens", "vision_max_n_token"),
        ("min_pixels", "vision_min_pixels"),
    ] {
        root.insert(name.to_owned(), vision[short].clone());
    }
    root
}

/// The flat file's own spelling of every key that has one, without the keys it lacks.
fn reference_spelling() -> Value {
    let mut root = flat();
    let scaling = root.remove("rope_scaling").unwrap();
    for (from, to) in [
        ("factor", "rope_factor"),
        ("beta_fast", "beta_fast"),
        ("beta_slow", "beta_slow"),
        ("original_max_position_embeddings", "original_seq_len"),
    ] {
        root.insert(to.to_owned(), scaling[from].clone());
    }
    for (from, to) in [
        ("hidden_size", "dim"),
        ("num_hidden_layers", "n_layers"),
        ("rms_norm_eps", "norm_eps"),
        ("num_attention_heads", "n_heads"),
        ("qk_rope_head_dim", "rope_head_dim"),
        ("sliding_window", "window_size"),
        ("kv_source_layer_ids", "kv_source_layers"),
        ("index_source_layer_ids", "index_source_layers"),
        ("candidate_source_layer_id", "candidate_source_layer"),
        ("num_experts_per_tok", "n_activated_experts"),
        ("moe_intermediate_size", "moe_inter_dim"),
        ("scoring_func", "score_func"),
        ("routed_scaling_factor", "route_scale"),
        ("engram_pad_token_id", "engram_pad_id"),
        ("num_nextn_predict_layers", "n_mtp_layers"),
        ("dspark_num_experts_per_tok", "dspark_n_activated_experts"),
    ] {
        let value = root.remove(from).unwrap();
        root.insert(to.to_owned(), value);
    }
    for absent in ["architectures", "model_type", "bos_token_id", "eos_token_id", "pad_token_id"] {
        root.remove(absent);
    }
    root.remove("max_position_embeddings");
    Value::Object(root)
}

#[test]
fn c085_nested_and_flat_are_the_same_model() {
    let nested = parse(&release()).unwrap();
    assert_eq!(nested, Config::named("v4.1-flash").unwrap());
    assert_eq!(parse(&Value::Object(flat())).unwrap(), nested);
    assert_eq!(parse(&reference_spelling()).unwrap(), nested);
    // `num_hash_layers` is absent from the release; zero says the same, and so do unknown keys.
    let mut extra = release();
    extra["text_config"]["num_hash_layers"] = json!(0);
    extra["vision_config"]["a_later_key"] = json!([1, 2]);
    extra["model_type"] = json!("deepseek_v4.1");
    assert_eq!(parse(&extra).unwrap(), nested);
}

#[test]
fn the_demo_configuration_is_accepted() {
    let config = Config::from_json(DEMO.as_bytes()).unwrap();
    assert_eq!((config.layers, config.hidden_size), (9, 256));
    let topology = config.topology();
    assert_eq!(topology.layers[8].index_source, Some(7));
    assert_eq!(topology.layers[8].kv_source, Some(5));
}

/// Sets `path` in the release's configuration and gives the error.
fn broken(path: &str, value: Value) -> String {
    let mut config = release();
    *config.pointer_mut(path).unwrap_or_else(|| panic!("{path} exists")) = value;
    let message = parse(&config).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn c085_wrong_lists_name_the_key_and_the_layer() {
    for (value, expected) in [
        (json!([0, 0, 2]), "config: compress_ratios (layer 3): 3 entries for 40 backbone layers"),
        (json!(vec![0; 44]), "config: compress_ratios (layer 43): 44 entries for 40"),
    ] {
        let message = broken("/text_config/compress_ratios", value);
        assert!(message.starts_with(expected), "{message}");
    }
    for (value, expected) in [
        (json!([]), "config: kv_source_layer_ids (layer 2): ratio 2 but no source"),
        (json!([3, 8, 14, 20]), "config: index_source_layer_ids (layer 3): the layer is in kv"),
        (json!([8, 14, 20]), "config: kv_source_layer_ids (layer 2): ratio 2 but no source"),
        (json!([2, 8, 14]), "config: kv_source_layer_ids (layer 20): ratio 1 but its source, l"),
        (json!([2, 8, 14, 20, 40]), "config: kv_source_layer_ids (layer 40): there are only 40"),
        (json!([2, 14, 8, 20]), "config: kv_source_layer_ids (layer 8): list layers once, in a"),
        (json!([1, 2, 8, 14, 20]), "config: kv_source_layer_ids (layer 1): the layer has compr"),
    ] {
        let message = broken("/text_config/kv_source_layer_ids", value);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn every_constraint_has_its_own_message() {
    let text = |key: &str| format!("/text_config/{key}");
    let mut messages = Vec::new();
    for (key, value, expected) in [
        ("hidden_size", json!(5121), "config: hidden_size: 5121 is not a multiple"),
        ("hidden_size", json!(-1), "config: hidden_size: -1 is not a non-negative integer"),
        ("hidden_size", json!(0), "config: hidden_size: 0 is outside 1 to"),
        ("hidden_size", json!(1u64 << 40), "config: hidden_size: 1099511627776 is outside 1 to"),
        ("q_lora_rank", json!(1296), "config: q_lora_rank: 1296 is not a multiple"),
        ("moe_intermediate_size", json!(2305), "config: moe_intermediate_size: 2305 is not"),
        ("head_dim", json!(520), "config: head_dim: 520 is not a multiple"),
        ("index_head_dim", json!(72), "config: index_head_dim: 72 is not a multiple"),
        ("o_groups", json!(7), "config: o_groups: 64 heads do not divide into 7 groups"),
        ("o_lora_rank", json!(1), "config: o_groups * o_lora_rank: 8 is not a multiple"),
        ("num_key_value_heads", json!(2), "config: num_key_value_heads: 2 is not supported"),
        ("n_shared_experts", json!(2), "config: n_shared_experts: 2 is not supported"),
        ("num_experts_per_tok", json!(1), "config: num_experts_per_tok: 1 of 384 experts"),
        ("num_experts_per_tok", json!(385), "config: num_experts_per_tok: 385 of 384 experts"),
        ("dspark_num_experts_per_tok", json!(1), "config: dspark_num_experts_per_tok: 1 of 128"),
        ("scoring_func", json!("sigmoid"), "config: scoring_func: \"sigmoid\" is not supported"),
        ("hidden_act", json!("gelu"), "config: hidden_act: \"gelu\" is not supported"),
        ("hc_mult", json!(2), "config: hc_mult: 2 residual streams; V4.1 has 4"),
        ("rms_norm_eps", json!(1e-60), "config: rms_norm_eps: must be above zero"),
        ("qk_rope_head_dim", json!(63), "config: qk_rope_head_dim: 63 is odd"),
        ("qk_rope_head_dim", json!(130), "config: qk_rope_head_dim: 130 rotating dims exceed ind"),
        ("compress_rope_theta", json!(1), "config: compress_rope_theta: 1 must exceed 1"),
        ("engram_layer_ids", json!([0, 14]), "config: engram_layer_ids (layer 0): rows are added"),
        ("engram_layer_ids", json!([1]), "config: engram_num_embeddings: 2 sizes for 1 Engram"),
        (
            "engram_num_embeddings",
            json!([384006168, 384016683]),
            "config: engram_num_embeddings (layer 14): 384016683 rows, but the 24 primes from \
             16000477 sum to 384016682",
        ),
        ("engram_max_ngram_size", json!(1), "config: engram_max_ngram_size: 1 is outside 2 to"),
        ("engram_vocab_size", json!(1_000_000_000), "config: engram_vocab_size: 24 buckets exceed"),
        ("engram_head_dim", json!(48), "config: engram_head_dim: 48 is not a multiple"),
        ("engram_compressed_vocab_size", json!(129281), "config: engram_compressed_vocab_size: 1"),
        ("engram_pad_token_id", json!(129280), "config: engram_pad_token_id: 129280 is not below"),
        ("dspark_noise_token_id", json!(129280), "config: dspark_noise_token_id: 129280 is not"),
        ("dspark_target_layer_ids", json!([40]), "config: dspark_target_layer_ids (layer 40): "),
        ("dspark_target_layer_ids", json!([]), "config: dspark_target_layer_ids: the draft needs"),
        ("candidate_source_layer_id", json!(21), "config: candidate_source_layer_id (layer 21): "),
        ("candidate_source_layer_id", json!(14), "config: candidate_source_layer_id (layer 20): "),
        (
            "candidate_topk_blocks",
            json!(64),
            "config: candidate_topk_blocks: 64 blocks of 8 hold 5",
        ),
        ("vocab_size", json!("many"), "config: vocab_size: \"many\" is not a non-negative integer"),
    ] {
        let message = broken(&text(key), value);
        assert!(message.starts_with(expected), "{message}");
        messages.push(message);
    }
    messages.sort();
    let count = messages.len();
    messages.dedup();
    assert_eq!(messages.len(), count);
}

#[test]
fn ratios_of_relatives_are_refused_at_their_layer() {
    let mut ratios = release()["text_config"]["compress_ratios"].clone();
    ratios[9] = json!(4);
    let message = broken("/text_config/compress_ratios", ratios.clone());
    assert_eq!(
        message,
        "config: compress_ratios (layer 9): ratio 4 is not one of 0, 1, 2 (V4 has 4 and 128)"
    );
    ratios[9] = json!(2);
    ratios[41] = json!(1);
    let message = broken("/text_config/compress_ratios", ratios);
    assert!(message.starts_with("config: compress_ratios (layer 41): draft stage 1"), "{message}");
}

#[test]
fn a_ramp_that_does_not_rise_is_refused() {
    let message = broken("/text_config/rope_scaling/original_max_position_embeddings", json!(3));
    assert!(message.contains("YaRN's ramp runs from pair 0 to 0 of 32"), "{message}");
    let message = broken("/text_config/rope_scaling/rope_type", json!("linear"));
    assert_eq!(message, "config: rope_type: \"linear\" is not supported; V4.1 has \"yarn\"");
    let message = broken("/text_config/rope_scaling/beta_fast", json!(0.5));
    assert!(message.starts_with("config: rope_scaling.beta_fast: 0.5 must exceed"), "{message}");
}

#[test]
fn picture_limits_that_no_picture_could_satisfy_are_refused() {
    for (key, value, expected) in [
        ("max_wh_ratio", json!(0), "max_wh_ratio is 0, it must be null or a positive number"),
        ("max_wh_ratio", json!(-1.5), "max_wh_ratio is -1.5, it must be null or a positive"),
        ("min_pixels", json!(1u64 << 63), "min_pixels is 9223372036854775808, it must be at most"),
        ("max_image_tokens", json!(3), "max_image_tokens is 3, it must be 4 to 16384"),
    ] {
        let mut config = release();
        config["vision_config"][key] = value;
        let error = parse(&config).unwrap_err();
        let message = error.to_string();
        let expected = format!("config: vision_config: vision setting {expected}");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("; correct vision_config"), "{message}");
        assert_eq!((error.exit_code(), message.lines().count()), (2, 1));
    }
}

#[test]
fn keys_of_the_tower_are_named_apart_from_the_text_models() {
    let vision = release()["vision_config"].as_object().unwrap().clone();
    for key in vision.keys().filter(|key| *key != "model_type") {
        let message = broken(&format!("/vision_config/{key}"), json!(["wide"]));
        let expected = format!("config: vision_config.{key}: [\"wide\"] is not a ");
        assert!(message.starts_with(&expected), "{message}");
    }
    let message = broken("/vision_config/hidden_size", json!(-1));
    let expected = "config: vision_config.hidden_size: -1 is not a non-negative integer";
    assert_eq!(message, expected);
    let message = broken("/vision_config/patch_size", Value::Null);
    assert_eq!(message, "config: vision_config.patch_size: missing; add it");
    let mut flat = flat();
    flat.insert("vision_dim".to_owned(), json!(-1));
    let message = parse(&Value::Object(flat)).unwrap_err().to_string();
    assert_eq!(message, "config: vision_dim: -1 is not a non-negative integer");
}

#[test]
fn c012_the_scale_block_must_be_stated_and_known() {
    let key = "/quantization_config/weight_block_size";
    let message = broken(key, json!([128, 128]));
    assert_eq!(
        message,
        "config: weight_block_size: [128, 128] is not V4.1's [32, 32] (V4 has [128, 128])"
    );
    assert!(broken(key, json!([32])).contains("must be two sizes"));
    assert_eq!(broken(key, Value::Null), "config: weight_block_size: missing; add it");
    let mut without = release();
    without.as_object_mut().unwrap().remove("quantization_config");
    let message = parse(&without).unwrap_err().to_string();
    assert_eq!(message, "config: weight_block_size: missing; add it");
    assert!(broken("/quantization_config/scale_fmt", json!("float")).contains("scale_fmt"));
    assert!(broken("/quantization_config/expert_dtype", json!("fp8")).contains("expert_dtype"));
}

#[test]
fn relatives_are_refused() {
    assert!(broken("/model_type", json!("deepseek_v4")).contains("model_type"));
    assert!(broken("/text_config/model_type", json!("deepseek_v4")).contains("model_type"));
    assert!(broken("/architectures", json!(["DeepseekV4ForCausalLM"])).contains("architectures"));
    for (key, value) in [("num_hash_layers", json!(3)), ("hc_head_eps", json!(1e-6))] {
        let mut config = release();
        config["text_config"][key] = value;
        let message = parse(&config).unwrap_err().to_string();
        assert!(message.starts_with(&format!("config: {key}: ")), "{message}");
        assert!(message.contains("only in V4"), "{message}");
    }
}

#[test]
fn two_spellings_that_disagree_are_refused() {
    let mut config = release();
    config["text_config"]["dim"] = json!(4096);
    let message = parse(&config).unwrap_err().to_string();
    assert_eq!(message, "config: dim: 4096 contradicts 5120 under hidden_size; keep one");
    config["text_config"]["dim"] = json!(5120);
    assert!(parse(&config).is_ok());
}

#[test]
fn a_missing_key_is_named_in_both_spellings() {
    let mut config = release();
    config["text_config"].as_object_mut().unwrap().remove("num_attention_heads");
    let message = parse(&config).unwrap_err().to_string();
    assert_eq!(message, "config: num_attention_heads: missing (also read as n_heads); add it");
}

#[test]
fn what_is_not_a_config_is_refused() {
    for text in ["", "[]", "{", "null", "{\"text_config\": 3}"] {
        let error = Config::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(error.exit_code(), 2);
    }
    let message = |text: &str| Config::from_json(text.as_bytes()).unwrap_err().to_string();
    assert!(message("{").ends_with("; take the release's"), "{}", message("{"));
    assert_eq!(message("[]"), "config: config.json: must be a JSON object; take the release's");
    assert!(Config::named("v5").unwrap_err().to_string().contains("known: v4.1-flash"));
}

#[test]
fn c055_draft_length_against_the_block_size() {
    let config = Config::named("v4.1-flash").unwrap();
    assert_eq!(config.draft_tokens(None).unwrap(), 5);
    assert_eq!(config.draft_tokens(Some(0)).unwrap(), 0);
    assert_eq!(config.draft_tokens(Some(5)).unwrap(), 5);
    for asked in [7, -1, 6] {
        let message = config.draft_tokens(Some(asked)).unwrap_err().to_string();
        assert!(message.contains(&format!("{asked} asked for")), "{message}");
        assert!(message.contains("blocks of 5"), "{message}");
    }
    let mut without = release();
    let text = without["text_config"].as_object_mut().unwrap();
    text.insert("num_nextn_predict_layers".into(), json!(0));
    text["compress_ratios"].as_array_mut().unwrap().truncate(40);
    let without = parse(&without).unwrap();
    assert_eq!(without.draft_tokens(None).unwrap(), 0);
    let message = without.draft_tokens(Some(5)).unwrap_err().to_string();
    assert!(message.contains("no draft stages"), "{message}");
}

/// Values that break rules, and some that keep them.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_u64..70).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        prop::collection::vec(0_u64..50, 0..6).prop_map(Value::from),
        prop::sample::select(vec![json!(null), json!(true), json!("x"), json!({}), json!([])]),
    ]
}

proptest! {
    #[test]
    fn any_two_changes_give_an_answer(
        keys in prop::array::uniform2(any::<prop::sample::Index>()),
        values in prop::array::uniform2(any_value()),
        object in prop::sample::select(vec!["text_config", "vision_config", "quantization_config"]),
    ) {
        let mut config = release();
        for (key, value) in keys.iter().zip(values) {
            let names: Vec<_> = config[object].as_object().unwrap().keys().cloned().collect();
            config[object][key.get(&names)] = value;
        }
        match parse(&config) {
            // What is accepted is safe to derive from.
            Ok(config) => prop_assert_eq!(config.topology().layers.len(), config.layers),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
