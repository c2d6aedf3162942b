//! The tensor catalogue and the byte ledger against the published counts, and broken copies of the
//! demo against the catalogue.

use std::collections::HashMap;
use std::fs;

use serde_json::{Map, Value, json};
use tandem_engine::model::v41::ledger::CacheLedger;
use tandem_engine::model::v41::names::{self, Format, Part};
use tandem_engine::model::v41::{Config, Ledger};
use tandem_engine::weights::{Checkpoint, Dtype, Files};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo");

fn release() -> Config {
    Config::named("v4.1-flash").unwrap()
}

fn demo() -> Config {
    Config::from_json(&fs::read(format!("{DEMO}/config.json")).unwrap()).unwrap()
}

#[test]
fn the_release_has_the_published_totals() {
    let ledger = Ledger::of(&release());
    assert_eq!(ledger.tensors, 96_085);
    assert_eq!(ledger.total_bytes, 510_286_023_000);
    assert_eq!(names::vision_tensors(&release()).len(), 266);
    let formats = ledger.formats;
    assert_eq!(formats.fp4, 278_585_671_680);
    assert_eq!(formats.engram_fp8, 196_613_849_600);
    assert_eq!(formats.engram_fp8 + formats.fp8, 204_015_223_296);
    assert_eq!(formats.scales, 23_563_015_184);
    assert_eq!(formats.bf16, 2 * 1_976_441_856);
    assert_eq!(formats.f32, 4 * 42_307_282);
}

#[test]
fn the_ledger_has_every_published_line() {
    let ledger = Ledger::of(&release());
    for (part, payload, scales) in [
        (Part::BackboneExperts, 271_790_899_200, 16_986_931_200),
        (Part::DraftExperts, 6_794_772_480, 424_673_280),
        (Part::EngramTables, 196_613_849_600, 6_144_182_800),
        (Part::EngramProjection, 314_572_800, 307_200),
        (Part::EngramGate, 163_840, 0),
        (Part::QueryDown, 262_144_000, 256_000),
        (Part::QueryUp, 1_677_721_600, 1_638_400),
        (Part::Latent, 104_857_600, 102_400),
        (Part::OutputDown, 1_342_177_280, 1_310_720),
        (Part::OutputUp, 1_677_721_600, 1_638_400),
        (Part::SharedExperts, 1_415_577_600, 1_382_400),
        (Part::IndexQuery, 41_943_040, 40_960),
        (Part::IndexWeights, 2_621_440, 0),
        (Part::IndexKey, 524_288, 0),
        (Part::IndexKeyNorm, 1_024, 0),
        (Part::CompressorLatent, 20_971_520, 0),
        (Part::CompressorGate, 15_728_640, 0),
        (Part::CompressorNorm, 4_096, 0),
        (Part::Router, 157_286_400, 0),
        (Part::RouterBiases, 122_880, 0),
        (Part::HyperConnections, 157_295_040, 0),
        (Part::Sinks, 10_240, 0),
        (Part::LayerNorms, 962_560, 0),
        (Part::Embedding, 1_323_827_200, 0),
        (Part::Head, 1_323_827_200, 0),
        (Part::FinalNorm, 10_240, 0),
        (Part::Vision, 970_536_960, 0),
    ] {
        let line = ledger.line(part).unwrap();
        assert_eq!((line.payload_bytes, line.scale_bytes), (payload, scales), "{part:?}");
    }
    let draft = ledger.line(Part::DraftDense).unwrap();
    assert_eq!((draft.tensors, draft.payload_bytes + draft.scale_bytes), (97, 713_428_872));
    assert_eq!(ledger.lines.len(), 28);
    let sum: u64 = ledger.lines.iter().map(|line| line.payload_bytes + line.scale_bytes).sum();
    assert_eq!(sum, ledger.total_bytes);
}

#[test]
fn parameters_are_552_196_8_and_16_billion() {
    let parameters = Ledger::of(&release()).parameters;
    assert_eq!(parameters.total, 763_205_315_794);
    assert_eq!(parameters.engram_tables, 196_613_849_600);
    let billions = |count: u64| (count as f64 / 1e9).round() as u64;
    assert_eq!(billions(parameters.backbone), 552);
    assert_eq!(billions(parameters.draft), 14);
    assert_eq!(billions(parameters.active_per_output_token), 16);
    assert_eq!(billions(parameters.active_per_prompt_token), 8);
}

#[test]
fn shards_have_the_published_bytes() {
    let config = release();
    let bytes = |list: Vec<names::Expected>, parts: fn(Part) -> bool| -> u64 {
        list.iter().filter(|t| parts(t.part)).map(names::Expected::length_bytes).sum()
    };
    let engram =
        |part| matches!(part, Part::EngramTables | Part::EngramProjection | Part::EngramGate);
    let block =
        |part| !matches!(part, Part::EngramTables | Part::EngramProjection | Part::EngramGate);
    for (layer, tensors, expected) in [
        (0, 2334, 7_389_500_888),
        (2, 2342, 7_405_694_680),
        (20, 2341, 7_400_451_800),
        (24, 2337, 7_395_076_568),
    ] {
        let list = names::layer_tensors(&config, layer);
        assert_eq!((list.len(), bytes(list, block)), (tensors, expected), "layer {layer}");
    }
    assert_eq!(bytes(names::layer_tensors(&config, 1), engram), 101_535_150_272);
    assert_eq!(bytes(names::layer_tensors(&config, 14), engram), 101_537_925_968);
    for (stage, tensors, expected) in
        [(0, 801, 2_652_643_800), (1, 798, 2_573_913_560), (2, 802, 2_706_317_272)]
    {
        let list = names::draft_tensors(&config, stage);
        assert_eq!((list.len(), bytes(list, |_| true)), (tensors, expected), "stage {stage}");
    }
}

#[test]
fn caches_take_890_bytes_a_token() {
    let caches = CacheLedger::of(&release());
    assert_eq!(caches.bytes_per_token(), 890.0);
    assert_eq!(caches.compressed_bytes(1 << 20), 890 << 20);
    assert_eq!(caches.compressed_bytes(3), 3 * 356 + 3 * 356);
    assert_eq!(caches.window_bytes(), 2_906_112);
    assert_eq!(caches.open_group_bytes * caches.gated_owners, 3 * 4096);
}

/// Small configurations that the format's description counts.
fn tiny(changes: &Value) -> Config {
    let text = include_str!("../src/model/v41/v4.1-flash.json");
    let mut config: Value = serde_json::from_str(text).unwrap();
    config["image_token_id"] = json!(630);
    config.as_object_mut().unwrap().remove("vision_config");
    let text: &mut Map<String, Value> = config["text_config"].as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        text.insert(key.clone(), value.clone());
    }
    Config::from_json(config.to_string().as_bytes()).unwrap()
}

#[test]
fn small_configurations_have_the_published_counts() {
    let a = Ledger::of(&tiny(&json!({
        "hidden_size": 128, "num_hidden_layers": 12, "num_attention_heads": 8, "head_dim": 64,
        "qk_rope_head_dim": 16, "q_lora_rank": 64, "o_groups": 4, "o_lora_rank": 32,
        "moe_intermediate_size": 64, "n_routed_experts": 16, "num_experts_per_tok": 3,
        "vocab_size": 640, "compress_ratios": [0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0],
        "kv_source_layer_ids": [2, 4, 6], "index_source_layer_ids": [2, 4, 6, 8, 10],
        "candidate_source_layer_id": 6, "candidate_block_size": 4, "candidate_topk_blocks": 4,
        "index_n_heads": 4, "index_head_dim": 32, "index_topk": 8, "sliding_window": 8,
        "engram_layer_ids": [1, 4], "engram_n_heads": 2, "engram_head_dim": 32,
        "engram_num_embeddings": [1618, 1824], "engram_vocab_size": 256,
        "engram_compressed_vocab_size": 480, "dspark_noise_token_id": 631,
        "dspark_target_layer_ids": [9, 10, 11], "dspark_n_routed_experts": 8,
        "dspark_num_experts_per_tok": 2, "dspark_markov_rank": 32,
    })));
    assert_eq!(a.tensors, 1797);
    assert_eq!(a.total_bytes / 100_000, 69);
    let b = Ledger::of(&tiny(&json!({
        "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 16, "q_lora_rank": 128,
        "o_lora_rank": 32, "moe_intermediate_size": 64, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "vocab_size": 640, "compress_ratios": [0, 2, 2, 1, 1, 1, 0, 0, 0],
        "kv_source_layer_ids": [1, 3], "index_source_layer_ids": [1, 3, 5],
        "candidate_source_layer_id": 3, "candidate_topk_blocks": 66,
        "engram_layer_ids": [1, 3], "engram_n_heads": 2, "engram_num_embeddings": [1618, 1824],
        "engram_vocab_size": 256, "engram_compressed_vocab_size": 480,
        "dspark_noise_token_id": 631, "dspark_target_layer_ids": [3, 4, 5],
        "dspark_n_routed_experts": 4, "dspark_num_experts_per_tok": 2, "dspark_markov_rank": 32,
    })));
    assert_eq!(b.tensors, 670);
    assert_eq!(b.total_bytes / 1_000_000, 26);
}

#[test]
fn the_demo_passes() {
    let checkpoint = Checkpoint::open(&Files::folder(DEMO)).unwrap();
    names::check(&demo(), &checkpoint).unwrap();
    let ledger = Ledger::of(&demo());
    assert_eq!((ledger.tensors, ledger.total_bytes), (1442, 21_191_028));
}

/// A tensor of a rewritten shard.
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// The demo as one file, with one change, checked against the demo's configuration.
fn changed(change: impl FnOnce(&mut HashMap<String, Entry>)) -> Result<Checkpoint, String> {
    let whole = Checkpoint::open(&Files::folder(DEMO)).unwrap();
    let mut tensors: HashMap<_, _> = whole
        .tensors()
        .map(|tensor| {
            let (dtype, shape) = (tensor.dtype().to_string(), tensor.shape().to_vec());
            (tensor.name().to_owned(), Entry { dtype, shape, bytes: tensor.read().unwrap() })
        })
        .collect();
    change(&mut tensors);
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, entry) in tensors {
        let begin = data.len();
        data.extend(entry.bytes);
        let offsets = [begin, data.len()];
        let entry = json!({"dtype": entry.dtype, "shape": entry.shape, "data_offsets": offsets});
        header.insert(name, entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(data);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    let checkpoint = Checkpoint::open(&Files::folder(folder.path())).map_err(|e| e.to_string())?;
    match names::check(&demo(), &checkpoint) {
        Ok(()) => Ok(checkpoint),
        Err(error) => {
            assert_eq!(error.exit_code(), 2);
            assert_eq!(error.to_string().lines().count(), 1);
            Err(error.to_string())
        }
    }
}

/// What is wrong, without what to do about it, which is the same for every fault.
fn message(change: impl FnOnce(&mut HashMap<String, Entry>)) -> String {
    let message = changed(change).err().expect("the change is refused");
    let remedy = "; take config.json and every shard from one release";
    message.strip_suffix(remedy).expect("the message ends with the remedy").to_owned()
}

#[test]
fn each_fault_has_its_own_line() {
    assert_eq!(
        message(|tensors| drop(tensors.remove("layers.3.attn.wkv.scale"))),
        "checkpoint: 1 tensor missing: layers.3.attn.wkv.scale"
    );
    let wrong = message(|tensors| {
        tensors.get_mut("norm.weight").unwrap().dtype = "F16".into();
    });
    assert_eq!(wrong, "checkpoint: 1 tensor of the wrong type: norm.weight is F16, must be BF16");
    let wrong = message(|tensors| {
        tensors.get_mut("layers.0.attn.wq_a.weight").unwrap().shape = vec![256, 64];
    });
    assert_eq!(
        wrong,
        "checkpoint: 1 tensor of the wrong shape: layers.0.attn.wq_a.weight is [256, 64], must be \
         [64, 256]"
    );
    let stray = message(|tensors| {
        let table = Entry { dtype: "F32".into(), shape: vec![1], bytes: vec![0; 4] };
        tensors.insert("layers.0.ffn.gate.tid2eid".into(), table);
    });
    assert_eq!(stray, "checkpoint: 1 tensor not of this model: layers.0.ffn.gate.tid2eid");
    let renamed = message(|tensors| {
        let tensor = tensors.remove("head.weight").unwrap();
        tensors.insert("lm_head.weight".into(), tensor);
    });
    assert_eq!(
        renamed,
        "checkpoint: 1 tensor missing: head.weight; 1 tensor not of this model: lm_head.weight"
    );
    let many = message(|tensors| tensors.retain(|name, _| !name.starts_with("mtp.")));
    assert!(many.contains("and 237 more"), "{many}");
}

#[test]
fn c012_a_scale_tensor_that_does_not_match_the_block_is_refused() {
    let wrong = message(|tensors| {
        let scale = tensors.get_mut("layers.0.attn.wq_a.scale").unwrap();
        (scale.shape, scale.bytes) = (vec![1, 2], vec![127; 2]);
    });
    assert_eq!(
        wrong,
        "checkpoint: 1 tensor of the wrong shape: layers.0.attn.wq_a.scale is [1, 2], must be \
         [2, 8], by weight_block_size [32, 32]"
    );
}

#[test]
fn c087_types_seen_in_the_wild() {
    const WEIGHT: &str = "layers.0.ffn.experts.0.w1.weight";
    const SCALE: &str = "layers.0.ffn.experts.0.w1.scale";
    let original = changed(|_| {}).unwrap();
    let bytes = |checkpoint: &Checkpoint, name| checkpoint.tensor(name).unwrap().read().unwrap();
    let (codes, scales) = (bytes(&original, WEIGHT), bytes(&original, SCALE));
    for (dtype, shape) in [("U8", vec![64, 128]), ("F4", vec![64, 256])] {
        let same = changed(|tensors| {
            let weight = tensors.get_mut(WEIGHT).unwrap();
            (weight.dtype, weight.shape) = (dtype.into(), shape);
            tensors.get_mut(SCALE).unwrap().dtype = "U8".into();
        })
        .unwrap();
        // The loader sees bytes: there is no number type whose sign could extend a nibble.
        assert_eq!(bytes(&same, WEIGHT), codes);
        assert_eq!(bytes(&same, SCALE), scales);
    }
    let packed = message(|tensors| {
        let weight = tensors.get_mut(WEIGHT).unwrap();
        (weight.dtype, weight.shape) = ("F4".into(), vec![128, 128]);
    });
    assert!(packed.contains("is [128, 128], must be [64, 256]"), "{packed}");
    for value in [0.5_f32, 0.3] {
        let refused = message(|tensors| {
            let scale = tensors.get_mut(SCALE).unwrap();
            scale.bytes = scale.bytes.iter().flat_map(|_| value.to_le_bytes()).collect();
            scale.dtype = "F32".into();
        });
        assert_eq!(
            refused,
            format!(
                "checkpoint: 1 tensor of the wrong type: {SCALE} is F32, must be F8_E8M0 or U8; \
                 convert the scales to exponent bytes"
            )
        );
    }
    assert_eq!(Format::Fp4Pairs.stored(), Dtype::I8);
    assert_eq!(Format::Scale.stored(), Dtype::F8E8M0);
}

#[test]
fn vision_norms_may_be_f32() {
    changed(|tensors| {
        let norm = tensors.get_mut("vision.norm.weight").unwrap();
        norm.dtype = "F32".into();
        norm.bytes = vec![0; 4 * 128];
    })
    .unwrap();
}

#[test]
fn c055_missing_draft_weights_are_an_error() {
    // The configuration promises drafts; a checkpoint without them is refused, not run without.
    let missing = message(|tensors| tensors.retain(|name, _| !name.starts_with("mtp.2.")));
    assert!(missing.contains("missing: mtp.2."), "{missing}");
}
