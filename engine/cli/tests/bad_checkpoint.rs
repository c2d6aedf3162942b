//! Checkpoints with one thing wrong: every command that meets it says what, and writes nothing.

mod tandem;

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tandem::{Copy, tandem};

/// The commands that read weights.
const LOAD: [&[&str]; 5] = [
    &["generate", "Call me", "-n", "1"],
    &["chat"],
    &["serve", "--port", "0"],
    &["bench", "-p", "1", "-n", "2", "-r", "1"],
    &["verify", "--goldens", concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens")],
];
/// The commands that read no further than the headers.
const LOOK: [&[&str]; 3] = [&["plan"], &["kernels", "gemm"], &["doctor"]];

/// Every one of `commands` refuses the checkpoint with one line that has `parts`.
#[track_caller]
fn refused<'a>(commands: impl IntoIterator<Item = &'a &'a [&'a str]>, copy: &Copy, parts: &[&str]) {
    for command in commands {
        let finished = tandem(&[*command, &["--model", copy.path()]].concat());
        if command[0] != "doctor" {
            assert_eq!(finished.output, "", "{command:?}");
        }
        finished.refused(2, parts);
    }
    let untouched = tandem(&["plan"]).ok();
    assert!(untouched.contains("total 21,191,028 B"), "the built-in demo is as it was");
}

#[test]
fn a_whole_copy_is_accepted() {
    let copy = Copy::new();
    for command in [LOAD[0], LOOK[0], LOOK[2]] {
        tandem(&[command, &["--model", copy.path()]].concat()).ok();
    }
}

/// What the model's constraints are numbered by, the key, its value, the error.
fn constraints() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let ratios = |layer: usize, ratio: u64| {
        let mut ratios = [0, 0, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0];
        ratios[layer] = ratio;
        json!(ratios)
    };
    let short = json!([0, 0, 2, 2, 2, 1, 1, 1, 1, 0, 0]);
    vec![
        ("1", "compress_ratios", short, "(layer 11): 11 entries for 9 backbone layers and 3 draft"),
        ("1", "compress_ratios", ratios(10, 1), "(layer 10): draft stage 1 has ratio 1"),
        ("1", "compress_ratios", ratios(3, 4), "(layer 3): ratio 4 is not one of 0, 1, 2 (V4 has"),
        ("1", "compress_ratios", ratios(3, 3), "(layer 3): ratio 3 is not one of 0, 1, 2"),
        ("2", "kv_source_layer_ids", json!([4, 5]), "(layer 2): ratio 2 but no source at or below"),
        ("2", "kv_source_layer_ids", json!([2, 4]), "(layer 5): ratio 1 but its source, layer 4,"),
        ("2", "kv_source_layer_ids", json!([2, 3, 4, 5]), "(layer 3): the layer is in kv_source"),
        ("2", "kv_source_layer_ids", json!([1, 2, 4, 5]), "(layer 1): the layer has compression"),
        (
            "2",
            "index_source_layer_ids",
            json!([0, 2, 4, 5]),
            "(layer 0): the layer has compression",
        ),
        ("2", "index_source_layer_ids", json!([2, 5, 4]), "(layer 4): list layers once, in ascend"),
        ("3", "candidate_source_layer_id", json!(6), "(layer 6): the layer is not in index_source"),
        ("3", "candidate_source_layer_id", json!(2), "(layer 4): the layer selects among candid"),
        ("4", "candidate_topk_blocks", json!(8), "8 blocks of 8 hold 57 entries for sure, fewer"),
        ("5", "hidden_size", json!(272), "272 is not a multiple of the scale block, 32"),
        ("5", "q_lora_rank", json!(48), "48 is not a multiple of the scale block, 32"),
        ("5", "moe_intermediate_size", json!(48), "48 is not a multiple of the scale block, 32"),
        ("5", "o_lora_rank", json!(8), "16 is not a multiple of the scale block, 32"),
        ("5", "engram_head_dim", json!(48), "48 is not a multiple of the scale block, 32"),
        ("6", "head_dim", json!(520), "520 is not a multiple of the scale block, 32"),
        ("6", "index_head_dim", json!(72), "72 is not a multiple of the scale block, 32"),
        ("6", "qk_rope_head_dim", json!(63), "63 is odd; dims rotate in pairs"),
        ("6", "qk_rope_head_dim", json!(130), "130 rotating dims exceed index_head_dim 128"),
        ("6", "qk_rope_head_dim", json!(514), "514 rotating dims exceed head_dim 512"),
        ("7", "o_groups", json!(3), "4 heads do not divide into 3 groups"),
        ("8", "n_shared_experts", json!(2), "2 is not supported; V4.1 has 1"),
        ("8", "num_experts_per_tok", json!(1), "1 of 16 experts; choose 2 to 16"),
        ("8", "num_experts_per_tok", json!(17), "17 of 16 experts; choose 2 to 16"),
        ("8", "dspark_num_experts_per_tok", json!(1), "1 of 8 experts; choose 2 to 8"),
        (
            "9",
            "engram_num_embeddings",
            json!([9210, 9457]),
            "(layer 4): 9457 rows, but the 6 primes",
        ),
        ("9", "engram_num_embeddings", json!([9210]), "1 sizes for 2 Engram layers"),
        ("9", "engram_layer_ids", json!([0, 4]), "(layer 0): rows are added from layer 1 on"),
        ("10", "dspark_target_layer_ids", json!([6, 9]), "(layer 9): there are only 9 backbone"),
        ("10", "dspark_noise_token_id", json!(2048), "2048 is not below vocab_size 2048"),
        ("10", "/image_token_id", json!(2048), "2048 is not below vocab_size 2048"),
        ("10", "/bos_token_id", json!(2048), "2048 contradicts 0 under bos_token_id"),
        ("11", "hc_mult", json!(2), "2 residual streams; V4.1 has 4"),
        (
            "12",
            "rope_scaling/original_max_position_embeddings",
            json!(3),
            "YaRN's ramp runs from pair 0 to 0 of 32; it must rise inside the pairs",
        ),
        ("", "vocab_size", json!("many"), "\"many\" is not a non-negative integer"),
        ("", "hidden_size", Value::Null, "missing (also read as dim); add it"),
        (
            "",
            "/quantization_config/weight_block_size",
            json!([128, 128]),
            "[128, 128] is not V4.1's",
        ),
        (
            "",
            "/quantization_config/expert_dtype",
            json!("fp8"),
            "\"fp8\" is not supported; V4.1 has",
        ),
        ("", "/model_type", json!("deepseek_v4"), "\"deepseek_v4\" is not supported; V4.1 has"),
    ]
}

#[test]
fn every_constraint_of_the_configuration_has_its_own_error() {
    let copy = Copy::new();
    let whole = fs::read(copy.file("config.json")).unwrap();
    let mut errors = BTreeSet::new();
    for (constraint, key, value, problem) in constraints() {
        fs::write(copy.file("config.json"), &whole).unwrap();
        let pointer = match key.strip_prefix('/') {
            Some(_) => key.to_owned(),
            None => format!("/text_config/{key}"),
        };
        copy.configure(&pointer, value.clone());
        let finished = tandem(&["plan", "--model", copy.path()]);
        let case = format!("constraint {constraint}: {key} = {value}");
        assert_eq!(finished.output, "", "{case}");
        let error = finished.errors.clone();
        finished.refused(2, &["error: config: ", problem]);
        assert!(errors.insert(error), "{case} has an error of its own");
    }
}

#[test]
fn every_command_refuses_a_wrong_configuration() {
    let copy = Copy::new();
    copy.configure("/text_config/hc_mult", json!(2));
    let all = || LOAD.iter().chain(&LOOK);
    refused(all(), &copy, &["config: hc_mult: ", "V4.1 has 4"]);
    copy.edit("config.json", |bytes| bytes.truncate(100));
    refused(all(), &copy, &["config.json", "not JSON"]);
    copy.edit("config.json", |bytes| *bytes = b"\xff\xfe".to_vec());
    refused(all(), &copy, &["config.json", "not JSON"]);
    fs::remove_file(copy.file("config.json")).unwrap();
    refused(all(), &copy, &["config.json", "check the path"]);
}

#[test]
fn a_missing_cut_or_mislabelled_file_is_named() {
    const SHARD: &str = "model-00003-of-00005.safetensors";
    const INDEX: &str = "model.safetensors.index.json";
    let meet = || LOAD.iter().chain(&LOOK[2..]);
    let copy = Copy::new();
    let whole = fs::read(copy.file(SHARD)).unwrap();

    copy.edit(SHARD, |bytes| bytes.truncate(whole.len() - 1));
    refused(meet(), &copy, &[SHARD, "truncated", "fetch the file again"]);
    copy.edit(SHARD, |bytes| bytes.truncate(100));
    refused(meet(), &copy, &[SHARD, "truncated"]);
    copy.edit(SHARD, Vec::clear);
    refused(meet(), &copy, &[SHARD, "0 bytes are too few for a header"]);
    fs::write(copy.file(SHARD), [&whole[..], b"more"].concat()).unwrap();
    refused(meet(), &copy, &[SHARD, "4 bytes after the last tensor"]);
    for (dtype, problem) in [("\"I32\"", "I32"), ("\"F99\"", "unknown dtype F99")] {
        let mut mislabelled = whole.clone();
        let at = mislabelled.windows(5).position(|bytes| bytes == b"\"F32\"").unwrap();
        mislabelled[at..at + 5].copy_from_slice(dtype.as_bytes());
        fs::write(copy.file(SHARD), mislabelled).unwrap();
        refused(meet(), &copy, &[problem, "layers."]);
    }
    fs::remove_file(copy.file(SHARD)).unwrap();
    refused(meet(), &copy, &["shards missing", SHARD, "from one release"]);
    fs::write(copy.file(SHARD), whole).unwrap();

    copy.edit(INDEX, |bytes| bytes.truncate(10));
    refused(meet(), &copy, &[INDEX, "bad index", "fetch the file again"]);
}

#[test]
fn a_tokenizer_that_is_none_or_another_model_s_is_refused() {
    const TOKENIZER: &str = "tokenizer.json";
    let meet = || LOAD[..4].iter().chain(&LOOK[2..]);
    let copy = Copy::new();
    copy.edit(TOKENIZER, |bytes| bytes.truncate(1000));
    refused(meet(), &copy, &["tokenizer"]);
    fs::remove_file(copy.file(TOKENIZER)).unwrap();
    refused(meet(), &copy, &[TOKENIZER, "check the path"]);
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    for (tensor, bytes, fault) in [
        ("norm.weight", &[0xc0, 0x7f][..], "NaN at byte 0"),
        ("layers.0.attn.kv_norm.weight", &[0, 0, 0x80, 0xff], "infinity at byte 2"),
        ("layers.0.attn.attn_sink", &[0, 0, 0xc0, 0x7f], "NaN at byte 0"),
        ("layers.0.attn.wkv.weight", &[0, 0x7f], "NaN at byte 1"),
        ("layers.0.attn.wkv.scale", &[0xff], "NaN scale at byte 0"),
        ("layers.8.ffn.experts.15.w2.scale", &[0xff], "NaN scale at byte 0"),
        ("layers.1.engram.embed.weight", &[0x7f], "NaN at byte 0"),
    ] {
        let copy = Copy::new();
        copy.spoil(tensor, bytes);
        refused(&LOAD, &copy, &[&format!("tensor {tensor}: "), fault, "fetch it again"]);
    }
    let copy = Copy::new();
    copy.spoil("mtp.0.attn.attn_sink", &[0, 0, 0xc0, 0x7f]);
    refused(&LOAD[3..4], &copy, &["tensor mtp.0.attn.attn_sink: ", "NaN at byte 0"]);
}
