//! The model on the accounting device: every launch of every layer passes the operand checks.

mod model_support;

use model_support::{Bench, Inputs, demo_config, limits, null};
use std::sync::Arc;
use tandem_engine::measure::{StepWork, Synthetic};
use tandem_engine::model::v41::{Caches, Config, Limits, Model, ModelWeights, Pools, Recipe};
use tandem_engine::plan::{Boards, Placement, Request, plan};
use tandem_engine::weights::{Content, Progress, Share, Source};
use tandem_hal::{Device, Place};

#[test]
fn a_step_of_the_demo_passes_every_check() {
    let device = null();
    let bench = Bench::new(&device, limits(128));
    let ids: Vec<i32> = (0..100).collect();
    let rows: Vec<usize> = (0..100).collect();
    let batch = bench.batch(&ids, &rows, &[99]);
    let outcome = bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
    assert_eq!(outcome.logits.shape(), [1, 2048]);
    assert_eq!(outcome.features.unwrap().shape(), [100, 768]);
    let before = device.counted().launches;
    let second = Inputs::new(&device, &limits(128), &demo_config());
    let upper: Vec<i32> = (90..100).collect();
    let batch = bench.split_batch(&second, (&ids, &rows), &upper, &[9]);
    let outcome = bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
    assert_eq!(outcome.logits.shape(), [1, 2048]);
    assert_eq!(outcome.features.unwrap().shape(), [10, 768]);
    // Streams and mix gathered, and the split layer's collapse runs a second time.
    assert_eq!(device.counted().launches - before, before + 3);
    let none = bench.split_batch(&second, (&ids, &rows), &[], &[]);
    let outcome = bench.model.forward(bench.lane(), &none, &bench.caches, &bench.scratch).unwrap();
    assert!(outcome.logits.is_empty());
}

#[test]
fn a_draft_of_the_demo_passes_every_check() {
    let device = null();
    let bench = Bench::new(&device, limits(128));
    let ids: Vec<i32> = (0..10).collect();
    let rows: Vec<usize> = (0..10).collect();
    let batch = bench.batch(&ids, &rows, &[9]);
    let outcome = bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
    let (drafter, scratch) =
        (bench.model.drafter().unwrap(), bench.scratch.draft.as_ref().unwrap());
    let features = outcome.features.unwrap();
    let at = (&batch.position, &batch.window_store);
    drafter.context(bench.lane(), &features, at, &bench.caches, scratch).unwrap();
    let draft = bench.draft_batch(7, 10);
    let drafted = drafter.forward(bench.lane(), &draft, &bench.caches, scratch).unwrap();
    assert_eq!(drafted.logits.shape(), [5, 2048]);
    let (slot, previous) = (drafted.logits.rows(1..2).unwrap(), draft.id.rows(0..1).unwrap());
    drafter.bias(bench.lane(), &previous, &slot).unwrap();
}

#[test]
fn the_release_is_planned_without_a_checkpoint() {
    let device = null();
    let config = Config::named("v4.1-flash").unwrap();
    let source =
        Source { content: Content::Unspecified, share: Share::WHOLE, tables: Place::Pinned };
    let map = vec![0; config.vocab_size];
    let mut last = Progress { done_bytes: 0, total_bytes: 0 };
    let weights =
        ModelWeights::load(&device, &config, (&map, true), &source, &mut |p| last = p).unwrap();
    // The checkpoint without its vision tower.
    assert_eq!(last.total_bytes, 510_286_023_000 - 970_536_960);
    let held: u64 = device.ledger().iter().map(|line| line.bytes).sum();
    assert!(held >= last.total_bytes && held < last.total_bytes + (1 << 30), "{held}");
    let purposes: Vec<_> = device.ledger().into_iter().map(|line| line.purpose).collect();
    for purpose in ["layers.2.attn", "layers.39.ffn", "layers.14.engram.table", "mtp.2.ffn"] {
        assert!(purposes.iter().any(|p| p == purpose), "{purpose}");
    }
    let limits = Limits {
        tokens: 4096,
        outputs: 64,
        sequences: 64,
        table_pages: 16384,
        pools: Pools { pages: 65536, window_pages: 1024, open_pages: 256 },
        cells: 1024,
        score_budget_bytes: 2 << 30,
    };
    let model = Model::plan(&device, &config, &Recipe::of(&config), limits, weights).unwrap();
    assert_eq!(model.split(), Some(20));
    model.scratch(&device).unwrap();
    Caches::new(&device, &config, &limits.pools).unwrap();
    assert!(model.fingerprint().lines().count() > 60);
}

#[test]
fn a_rank_reads_what_the_plan_says() {
    let (device, config) = (null(), Config::named("v4.1-flash").unwrap());
    let map = vec![0; config.vocab_size];
    let mut request = Request::new(Boards::parse("nvidia-h200x8").unwrap());
    request.pictures = Some(0);
    for (ranks, engram) in [
        (1, Placement::Host),
        (2, Placement::Device),
        (4, Placement::Host),
        (8, Placement::Host),
        (8, Placement::Device),
    ] {
        (request.tensor_parallel, request.engram) = (Some(ranks), Some(engram));
        let planned = plan(&config, &request).unwrap().weights;
        let share = Share::new(ranks as u64 - 1, ranks as u64).unwrap();
        let source = Source { content: Content::Unspecified, share, tables: Place::Device };
        let mut read = 0;
        let mut progress = |progress: Progress| read = progress.total_bytes;
        ModelWeights::load(&device, &config, (&map, true), &source, &mut progress).unwrap();
        let bytes: u64 = planned.device.iter().chain(&planned.host).map(|item| item.bytes).sum();
        assert_eq!(bytes, read, "{ranks} ranks, tables on the {engram:?}");
    }
}

#[test]
fn a_step_of_the_first_layers_moves_what_their_sizes_say() {
    let config = Config::named("v4.1-flash").unwrap().cut(16, 64).unwrap();
    let works = [1, 128].map(|rows| StepWork::decode(rows, 1, 4096));
    let device = null();
    let shared: Arc<dyn Device> = Arc::new(device.clone());
    let content = (Content::Unspecified, Place::Device);
    let options = StepWork::options(&works);
    let mut model =
        Synthetic::new(&shared, &config, options, content, 64 << 20, &mut |_| {}).unwrap();
    let mut gigabytes = works.map(|work| {
        let before = device.counted();
        model.run(&work).unwrap();
        device.counted().since(&before).cost.read_bytes as f64 / 1e9
    });
    // Sixteen times 165 MB beside the routed experts, the head, two projections of n-gram memory;
    // and a layer's experts are of 18.8 MB, of which a row takes 6 and 128 rows take 333.
    for (rows, experts) in [6.0, 333.0].into_iter().enumerate() {
        let sizes = 16.0 * (0.165 + experts * 0.0188) + 1.324 + 2.0 * 0.157;
        gigabytes[rows] /= sizes;
    }
    println!("bytes over those of the weights: {gigabytes:?}");
    assert!(gigabytes.iter().all(|share| (1.0..1.05).contains(share)), "{gigabytes:?}");
}
