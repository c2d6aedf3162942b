//! Plans: the published sums, what fits where, and refusals with numbers.

use std::fs;

use tandem_engine::model::v41::Config;
use tandem_engine::plan::{Board, Boards, Placement, Plan, Request, plan};

fn release() -> Config {
    Config::named("v4.1-flash").unwrap()
}

fn on(devices: &str) -> Request {
    Request::new(Boards::parse(devices).unwrap())
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

#[test]
fn the_text_has_every_published_line() {
    let text = plan(&release(), &on("nvidia-h200x8")).unwrap().to_string();
    for (label, numbers) in [
        ("backbone routed experts", "271,790,899,200  16,986,931,200 253.125"),
        ("DSpark routed experts", "6,794,772,480 424,673,280 6.328"),
        ("Engram tables", "196,613,849,600 6,144,182,800 183.111"),
        ("Engram wkv", "314,572,800 307,200 0.293"),
        ("Engram q_weight, k_weight", "163,840 0.000"),
        ("attn wq_a", "262,144,000 256,000 0.244"),
        ("attn wq_b", "1,677,721,600 1,638,400 1.563"),
        ("attn wkv", "104,857,600 102,400 0.098"),
        ("attn wo_a", "1,342,177,280 1,310,720 1.250"),
        ("attn wo_b", "1,677,721,600 1,638,400 1.563"),
        ("shared experts", "1,415,577,600 1,382,400 1.318"),
        ("indexer wq_b", "41,943,040 40,960 0.039"),
        ("indexer weights_proj", "2,621,440 0.002"),
        ("indexer wk", "524,288 0.000"),
        ("indexer k_norm", "1,024 0.000"),
        ("compressor wkv", "20,971,520 0.020"),
        ("compressor wgate", "15,728,640 0.015"),
        ("compressor norm", "4,096 0.000"),
        ("router gate.weight", "157,286,400 0.146"),
        ("router biases", "122,880 0.000"),
        ("mHC tensors", "157,295,040 0.146"),
        ("attention sinks", "10,240 0.000"),
        ("layer norms (attn, ffn, q, kv)", "962,560 0.001"),
        ("embed", "1,323,827,200 1.233"),
        ("head", "1,323,827,200 1.233"),
        ("final norm", "10,240 0.000"),
        ("DSpark non-expert tensors", "713,428,872 0.664"),
        ("vision", "970,536,960 0.904"),
        ("total", "96,085 510,286,023,000"),
        ("FP4 experts", "278,585,671,680 259.453"),
        ("E8M0 scales", "23,563,015,184 21.945"),
        ("other FP8", "6.893"),
        ("BF16 and F32", "3.839"),
        ("both, per token", "890"),
        ("windows, per sequence", "2,906,112"),
    ] {
        let found = text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with(label) && numbers.split_whitespace().all(|n| has_word(line, n))
        });
        assert!(found, "{label}: {numbers} in\n{text}");
    }
    assert!(text.contains("total 510,286,023,000 B = 475.241 GiB"));
    assert!(text.contains("8 x nvidia-h200 (sm_90, 139.8 GiB each): tensor parallel 4, 2 copies"));
}

fn has_word(line: &str, word: &str) -> bool {
    line.split_whitespace().any(|part| part == word)
}

#[test]
fn the_text_is_aligned() {
    let text = plan(&release(), &on("nvidia-h200x8")).unwrap().to_string();
    let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 30);
    assert!(lines.windows(2).all(|pair| pair[0].len() == pair[1].len()), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line && line.len() < 120));
}

#[test]
fn four_h200_hold_thirty_eight_million_tokens() {
    let plan = plan(&release(), &on("nvidia-h200x4")).unwrap();
    plan.require_fit().unwrap();
    assert!(plan.cache_tokens > 38_000_000, "{}", plan.cache_tokens);
    assert_eq!(plan.replicas, 1);
    assert!((gib(plan.weight_bytes()) - 78.7).abs() < 0.05);
}

/// A board known by its memory alone.
fn card(gigabytes: u64, ranks: usize) -> Plan {
    let mut request = on("mi300x8");
    request.boards.board.memory_bytes = gigabytes * 1_000_000_000;
    (request.tensor_parallel, request.step_tokens) = (Some(ranks), Some(8192));
    request.context_tokens = Some(1 << 20);
    request.engram = Some(Placement::Host);
    plan(&release(), &request).unwrap()
}

#[test]
fn c099_say_before_loading_whether_it_fits() {
    // Public engines hold 49.2, 81.2 and 145.2 GiB a rank.
    for (ranks, weights) in [(8, 44.1), (4, 78.7), (2, 148.0)] {
        let plan = card(256, ranks);
        assert!((gib(plan.weight_bytes()) - weights).abs() < 0.05, "{}", gib(plan.weight_bytes()));
        plan.require_fit().unwrap();
        assert_eq!(card(192, ranks).fits(), ranks > 2);
        assert_eq!(card(80, ranks).fits(), ranks > 4);
    }
    let error = card(192, 2).require_fit().unwrap_err();
    assert_eq!(error.exit_code(), 3);
    let message = error.to_string();
    for part in ["needs 167.2 GiB", "weights 148.0 GiB", "may fill 160.9 GiB", "6.2 GiB short"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.contains("what fits: tensor parallel 4"), "{message}");
    assert_eq!(message.lines().count(), 1);
    let message = card(80, 2).require_fit().unwrap_err().to_string();
    assert!(message.ends_with("what fits: tensor parallel 8"), "{message}");
}

#[test]
fn one_board_is_refused_with_numbers() {
    let plan = plan(&release(), &on("h200")).unwrap();
    let message = plan.require_fit().unwrap_err().to_string();
    assert!(message.contains("(tensor parallel 1)"), "{message}");
    assert!(message.ends_with("what fits: tensor parallel 4 on 4 boards"), "{message}");
    // The text of a plan that does not fit ends with the same line.
    assert!(plan.to_string().trim_end().ends_with(&message));
}

#[test]
fn every_board_fits_at_its_defaults() {
    for board in Board::all() {
        let name = board.name.clone();
        let plan = plan(&release(), &Request::new(Boards { board, count: 8 })).unwrap();
        assert!(plan.fits(), "{name}");
        assert_eq!(plan.limits.tensor_parallel * plan.replicas, 8);
    }
    let mut resident = on("mi355xx8");
    (resident.tensor_parallel, resident.engram) = (Some(8), Some(Placement::Device));
    let resident = plan(&release(), &resident).unwrap();
    resident.require_fit().unwrap();
    assert!(resident.weights.host.is_empty());
    let mut resident = on("h200x4");
    resident.engram = Some(Placement::Device);
    let resident = plan(&release(), &resident).unwrap().require_fit().unwrap_err().to_string();
    assert!(resident.contains("Engram tables on the host"), "{resident}");
}

#[test]
fn c092_the_demo_is_planned_for_gfx942() {
    let text = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo/config.json")).unwrap();
    let demo = Config::from_json(&text).unwrap();
    let plan = plan(&demo, &on("mi300x")).unwrap();
    plan.require_fit().unwrap();
    assert!(plan.to_string().contains("experts by FP8 (fnuz) matrix units, codes expanded"));
}

#[test]
fn c086_a_size_that_does_not_divide_is_refused_before_loading() {
    let refused = |change: fn(&mut Request)| {
        let mut request = on("h200x8");
        change(&mut request);
        let error = plan(&release(), &request).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    let message = refused(|request| request.tensor_parallel = Some(16));
    assert!(message.contains("144 a rank is 4.5 scale groups of 32"), "{message}");
    let message = refused(|request| {
        (request.boards.count, request.tensor_parallel) = (6, Some(4));
    });
    assert!(message.contains("6 boards do not divide into groups of 4"), "{message}");
}

#[test]
fn options_outside_their_range_are_refused() {
    for (option, change) in [
        ("--max-model-len", (|r| r.context_tokens = Some(1 << 21)) as fn(&mut Request)),
        ("--max-model-len", |r| r.context_tokens = Some(0)),
        ("--max-num-seqs", |r| r.sequences = Some(0)),
        ("--max-num-batched-tokens", |r| r.step_tokens = Some(u64::MAX)),
        ("--gpu-memory-utilization", |r| r.utilisation = Some(1.5)),
        ("--gpu-memory-utilization", |r| r.utilisation = Some(f64::NAN)),
        ("score budget", |r| r.score_budget_bytes = 1),
        ("--max-pictures", |r| r.pictures = Some(4097)),
        ("draft tokens", |r| r.draft_tokens = Some(7)),
    ] {
        let mut request = on("h200x8");
        change(&mut request);
        let message = plan(&release(), &request).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{option}: ")), "{option}: {message}");
    }
}

#[test]
fn pictures_held_at_once_are_planned() {
    let with = |pictures| {
        let mut request = on("h200x4");
        request.pictures = pictures;
        plan(&release(), &request).unwrap()
    };
    // 1024 rows of 5120 bf16 values each.
    let rows =
        |plan: &Plan| plan.workspace.iter().find(|item| item.label == "picture rows").cloned();
    assert_eq!(rows(&with(None)).unwrap().bytes, 2 * (10 << 20));
    assert_eq!(with(Some(9)).workspace_bytes() - with(Some(1)).workspace_bytes(), 8 * (10 << 20));
    assert!(with(Some(1)).weight_bytes() - with(Some(0)).weight_bytes() >= 970_536_960);
    assert_eq!(rows(&with(Some(0))), None);
    let mut request = on("h200x4");
    request.pictures = Some(1);
    let blind = Config { vision: None, ..release() };
    let message = plan(&blind, &request).unwrap_err().to_string();
    assert_eq!(message, "--max-pictures: this model reads text only; leave it out");
}

#[test]
fn drafting_off_leaves_its_memory_to_the_cache() {
    let with = plan(&release(), &on("h200x4")).unwrap();
    let mut request = on("h200x4");
    request.draft_tokens = Some(0);
    let without = plan(&release(), &request).unwrap();
    assert!(without.weight_bytes() < with.weight_bytes());
    assert_eq!(without.pages.window_page_bytes, 32 * 40 * 528);
    assert!(without.cache_tokens > with.cache_tokens);
}
