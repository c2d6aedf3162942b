//! Texts as vectors, on the demo model.

mod engine_support;
mod model_support;

use engine_support::{Drafts, FakeModel, prompt};
use model_support::{Bench, demo, limits};
use std::sync::Arc;
use tandem_engine::embed::{Embedded, Embedder};
use tandem_engine::exec::{Engine, EngineOptions, Runner};
use tandem_engine::model::v41::Resident;
use tandem_hal::{Device, Rule, num::bf16};
use tandem_reference::RefDevice;

fn embedder(options: EngineOptions) -> Embedder<Runner<Resident>> {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let resident = demo::resident(device.as_ref(), false, &options);
    let runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    Embedder::new(Engine::new(runner, options).unwrap())
}

/// For a few sequences at once, over pages for little more than the longest.
fn options(sequences: u64, step_tokens: u64) -> EngineOptions {
    EngineOptions {
        sequences,
        step_tokens,
        chunk_tokens: step_tokens,
        pages: 8,
        draft_tokens: 0,
        ..engine_support::options()
    }
}

fn embed(options: EngineOptions, texts: &[Vec<u32>]) -> Vec<Embedded> {
    let mut embedder = embedder(options);
    texts.iter().for_each(|text| embedder.add(text.clone()).unwrap());
    let mut done = Vec::new();
    while embedder.pending() > 0 {
        done.extend(embedder.step().unwrap());
    }
    done.sort_by_key(|embedded| embedded.index);
    done
}

#[test]
fn a_text_has_one_vector_whatever_runs_beside_it() {
    let lengths = [1, 133, 17, 64, 31];
    let texts: Vec<_> = (0..).zip(lengths).map(|(n, tokens)| prompt(n, tokens)).collect();
    let alone = embed(options(1, 256), &texts);
    for (embedded, text) in alone.iter().zip(&texts) {
        assert_eq!(embedded.tokens, text.len() as u64);
        let vector = embedded.vector.as_ref().unwrap();
        let squares: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
        assert!((squares - 1.0).abs() < 1e-6, "{squares}");
    }
    assert!(alone.windows(2).all(|pair| pair[0].vector != pair[1].vector));
    for (sequences, step_tokens) in [(8, 96), (3, 8)] {
        assert_eq!(embed(options(sequences, step_tokens), &texts), alone, "{sequences} at once");
    }
}

/// What is pooled is what logits are made from, at every position.
#[test]
fn the_vector_is_the_mean_of_what_the_head_reads() {
    let text = prompt(3, 40);
    let ids: Vec<_> = text.iter().map(|id| *id as i32).collect();
    let device = RefDevice::new();
    let bench = Bench::new(&device, limits(40));
    let (rows, outputs): (Vec<_>, Vec<_>) = (0..40).map(|row| (row as usize, row)).unzip();
    let batch = bench.batch(&ids, &rows, &outputs);
    bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
    let states = bench.scratch.head.normed.rows(0..40).unwrap();
    let bytes = bench.stream.read(&states).unwrap();
    let values = bytes.as_chunks::<2>().0.iter().map(|b| bf16::to_f32(u16::from_le_bytes(*b)));
    let values: Vec<_> = values.map(f64::from).collect();
    let width = values.len() / 40;
    let mean = |at: usize| (0..40).map(|row| values[row * width + at]).sum::<f64>() / 40.0;
    let mean: Vec<_> = (0..width).map(mean).collect();
    let length = mean.iter().map(|value| value * value).sum::<f64>().sqrt();
    assert!(length > 0.01, "{length}");
    let expected: Vec<_> = mean.iter().map(|value| (value / length) as f32).collect();
    let embedded = embed(options(2, 96), &[text]).remove(0);
    assert_eq!(embedded.vector.unwrap(), expected);
}

#[test]
fn texts_that_cannot_be_embedded_are_refused() {
    let engine = Engine::new(FakeModel::new(Drafts::Right), options(2, 64)).unwrap();
    let mut embedder = Embedder::new(engine);
    let mut refused = |ids| embedder.add(ids).unwrap_err().to_string();
    assert_eq!(refused(vec![]), "text: it has no tokens; give at least one");
    assert!(refused(vec![1; 513]).starts_with("text: 513 tokens, but the cache holds 512"));
    assert_eq!(refused(vec![5, 97]), "text: id 97 is outside the vocabulary of 97");
    assert_eq!(embedder.pending(), 0);
    // A model without hidden states says so.
    embedder.add(vec![1]).unwrap();
    assert!(embedder.step().unwrap_err().to_string().contains("only models with hidden states"));
}
