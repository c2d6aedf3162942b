//! The demo on the reference against golden files, running freely, and against itself.

mod model_support;

use model_support::{Bench, Inputs, demo_config, limits, primitives};
use tandem_engine::exec::Drafted;
use tandem_engine::model::v41::{Limits, Outcome};
use tandem_engine::verify::GoldenFile;
use tandem_engine::weights::Files;
use tandem_reference::RefDevice;

fn golden(name: &str) -> GoldenFile {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens");
    GoldenFile::read(&Files::folder(folder), &format!("{name}.safetensors")).unwrap()
}

fn relative(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let gap: f64 = found.iter().zip(expected).map(|(f, e)| square(f - e)).sum();
    let size: f64 = expected.iter().map(|e| square(*e)).sum();
    (gap / size).sqrt()
}

fn all_rows(ids: &[i32]) -> Vec<usize> {
    (0..ids.len()).collect()
}

fn run(bench: &Bench, ids: &[i32], outputs: &[i32]) -> Outcome {
    let batch = bench.batch(ids, &all_rows(ids), outputs);
    bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap()
}

/// Layer by layer: the streams at each layer's input, last positions.
fn stream_gaps(name: &str) -> Vec<f64> {
    let file = golden(name);
    let ids = file.ids().unwrap().values;
    let expected = file.reals("streams_tail").unwrap().unwrap();
    let device = RefDevice::new();
    let bench = Bench::new(&device, limits(ids.len() as u64));
    let batch = bench.batch(&ids, &all_rows(&ids), &[]);
    let t = bench.scratch.layers.rows(batch.tokens).unwrap();
    bench.model.start(bench.lane(), &batch, &t).unwrap();
    let tail = expected.shape[1] as u64;
    (0..expected.len())
        .map(|layer| {
            let streams = &t.block.flow.streams;
            let last = streams.rows(batch.tokens - tail..batch.tokens).unwrap();
            let gap = relative(&bench.f32s(&last), expected.at(layer));
            bench.model.layer(layer).forward(bench.lane(), &batch, &bench.caches, &t).unwrap();
            gap
        })
        .collect()
}

#[test]
fn the_streams_of_one_token_are_the_golden_ones() {
    let gaps = stream_gaps("single_token");
    assert!(gaps.iter().all(|gap| *gap <= 1e-3), "{gaps:?}");
}

#[test]
fn the_first_layers_of_a_prompt_are_the_golden_ones() {
    let gaps = stream_gaps("text_17");
    println!("text_17: {gaps:?}");
    assert!(gaps[..3].iter().all(|gap| *gap <= 2e-2), "{gaps:?}");
}

#[test]
fn free_running_logits_agree() {
    let file = golden("text_200");
    let ids = file.ids().unwrap().values;
    let device = RefDevice::new();
    let bench = Bench::new(&device, limits(ids.len() as u64));
    let outputs: Vec<i32> = (0..ids.len() as i32).collect();
    let outcome = run(&bench, &ids, &outputs);
    let logits = bench.f32s(&outcome.logits);
    let vocab = outcome.logits.shape()[1] as usize;
    let (top, values) = (
        file.integers("top16_ids").unwrap().unwrap(),
        file.reals("top16_logits").unwrap().unwrap(),
    );
    let normaliser = file.reals("logsumexp").unwrap().unwrap();
    let mut gaps: Vec<f64> = Vec::new();
    for (t, row) in logits.chunks(vocab).enumerate() {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
        let found = f64::from(largest) + sum.ln();
        for (id, value) in top.at(t).iter().zip(values.at(t)) {
            let expected = f64::from(*value) - f64::from(normaliser.values[t]);
            gaps.push((f64::from(row[*id as usize]) - found - expected).abs());
        }
    }
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let p99 = gaps[gaps.len() * 99 / 100];
    println!("text_200: mean {mean:.4}, p99 {p99:.4}");
    assert!(mean <= 0.08 && p99 <= 0.6, "mean {mean}, p99 {p99}");
}

/// The draft after a prompt, its context made of the golden captures.
fn draft(bench: &Bench, file: &GoldenFile) -> Drafted {
    let ids = file.ids().unwrap().values;
    let anchor = file.integers("greedy").unwrap().unwrap().values[0];
    let captured = file.reals("captured_tail").unwrap().unwrap();
    let tail = ids.len() - captured.len();
    let rows: Vec<usize> = (tail..ids.len()).collect();
    let batch = bench.batch(&ids, &rows, &[]);
    let t = bench.scratch.layers.rows(batch.tokens).unwrap();
    let features = t.features.unwrap();
    bench.write_bf16s(&features, &captured.values);
    let (drafter, scratch) =
        (bench.model.drafter().unwrap(), bench.scratch.draft.as_ref().unwrap());
    let at = (&batch.position, &batch.window_store);
    drafter.context(bench.lane(), &features, at, &bench.caches, scratch).unwrap();
    let batch = bench.draft_batch(anchor, ids.len());
    drafter.forward(bench.lane(), &batch, &bench.caches, scratch).unwrap()
}

#[test]
fn drafts_from_golden_captures_are_the_golden_ones() {
    let device = RefDevice::new();
    for name in ["single_token", "text_17", "text_200"] {
        let file = golden(name);
        let bench = Bench::new(&device, limits(256));
        let drafted = draft(&bench, &file);
        let hidden = file.reals("draft_hidden").unwrap().unwrap();
        let gap = relative(&bench.f32s(&drafted.hidden), &hidden.values);
        println!("{name}: hidden {gap:.1e}");
        assert!(gap <= 5e-3, "{name}: {gap}");
    }
}

#[test]
fn captures_of_one_token_are_the_golden_ones() {
    let file = golden("single_token");
    let bench = Bench::new(&RefDevice::new(), limits(64));
    let outcome = run(&bench, &file.ids().unwrap().values, &[0]);
    let captured = file.reals("captured_tail").unwrap().unwrap();
    assert!(relative(&bench.f32s(&outcome.features.unwrap()), &captured.values) <= 1e-3);
}

#[test]
fn draft_tokens_and_confidences_are_the_golden_ones() {
    let file = golden("single_token");
    let bench = Bench::new(&RefDevice::new(), limits(64));
    let drafted = draft(&bench, &file);
    let drafter = bench.model.drafter().unwrap();
    let integers = |name| file.integers(name).unwrap().unwrap().values;
    let (tokens, mut token) = (integers("draft_tokens"), integers("greedy")[0]);
    let logits = file.reals("draft_logits").unwrap().unwrap();
    let confidence = file.reals("draft_confidence_logits").unwrap().unwrap().values;
    let previous = bench.scratch.layers.block.moe.expert.join_last().unwrap();
    let (previous, y) = (previous.rows(0..1).unwrap(), &bench.scratch.output_pre);
    let y = y.join_last().unwrap().rows(0..1).unwrap();
    for place in 0..tokens.len() {
        let row = place as u64..place as u64 + 1;
        bench.write_i32s(&previous, &[token]);
        let slot = drafted.logits.rows(row.clone()).unwrap();
        drafter.bias(bench.lane(), &previous, &slot).unwrap();
        let found = bench.f32s(&slot);
        assert!(relative(&found, logits.at(place)) <= 5e-3, "place {place}");
        let best = (0..found.len()).max_by(|a, b| found[*a].total_cmp(&found[*b])).unwrap();
        assert_eq!(best as i32, tokens[place], "place {place}");
        let hidden = drafted.hidden.rows(row).unwrap();
        drafter.confidence(bench.lane(), &hidden, &previous, &y).unwrap();
        let z = bench.f32s(&y)[0];
        assert!((z - confidence[place]).abs() <= 1e-2, "place {place}: {z}");
        token = tokens[place];
    }
}

#[test]
fn scores_in_pieces_select_the_same_entries() {
    let ids = golden("text_300").ids().unwrap().values;
    let device = RefDevice::new();
    let row_bytes = 4 * limits(300).table_pages * 64;
    let selections: Vec<_> = [300 * row_bytes, 150 * row_bytes, 7 * row_bytes, row_bytes]
        .into_iter()
        .map(|score_budget_bytes| {
            let bench = Bench::new(&device, Limits { score_budget_bytes, ..limits(300) });
            let outcome = run(&bench, &ids, &[299]);
            let t = bench.scratch.layers.block.compressed.as_ref().unwrap();
            let blocks = bench.i32s(&t.selection.blocks);
            (bench.i32s(&t.selection.entries), blocks, bench.f32s(&outcome.logits))
        })
        .collect();
    assert!(selections[0].0.iter().any(|entry| *entry > 64));
    assert!(selections.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn trailing_rows_of_the_upper_half_are_exact() {
    let ids = &golden("text_1201").ids().unwrap().values[..600];
    let rows = all_rows(ids);
    let device = RefDevice::new();
    let bench = Bench::new(&device, limits(640));
    let outcome = run(&bench, ids, &[599]);
    let whole = bench.f32s(&outcome.logits);
    let features = outcome.features.unwrap().rows(472..600).unwrap();
    let captured = bench.f32s(&features);
    // Layers 5 to 8 on the last 128 + 3 * 127 rows.
    let upper: Vec<i32> = (91..600).collect();
    let second = Inputs::new(&device, &limits(640), &demo_config());
    let bench = Bench::new(&device, limits(640));
    let batch = bench.split_batch(&second, (ids, &rows), &upper, &[508]);
    let outcome = bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
    assert_eq!(bench.f32s(&outcome.logits), whole);
    let features = outcome.features.unwrap().rows(381..509).unwrap();
    assert_eq!(bench.f32s(&features), captured);
}

#[test]
fn chunks_and_single_tokens_give_the_same_bytes() {
    let ids = golden("text_200").ids().unwrap().values;
    let ids = &ids[..151];
    let device = RefDevice::new();
    let bench = Bench::new(&device, limits(192));
    let whole = bench.f32s(&run(&bench, ids, &[150]).logits);
    let bench = Bench::new(&device, limits(192));
    let mut last = Vec::new();
    for range in [0..33, 33..34, 34..101, 101..149, 149..150, 150..151] {
        let rows: Vec<usize> = range.collect();
        let batch = bench.batch(ids, &rows, &[rows.len() as i32 - 1]);
        let outcome =
            bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
        last = bench.f32s(&outcome.logits);
    }
    assert_eq!(last, whole);
}

#[test]
fn fused_operators_and_their_steps_give_the_same_bytes() {
    let ids = golden("text_200").ids().unwrap().values;
    let ids = &ids[..151];
    let [fused, steps] = [RefDevice::new(), primitives()].map(|device| {
        let bench = Bench::new(&device, limits(192));
        bench.f32s(&run(&bench, ids, &[150]).logits)
    });
    assert_eq!(fused, steps);
}
