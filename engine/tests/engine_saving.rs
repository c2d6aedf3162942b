//! What a long prompt costs, counted where the work is launched: the release on the accounting
//! device, chunk by chunk through the sequence engine, with and without the upper half skipped.

mod engine_support;
mod model_support;

use engine_support::{finish, options, prompt, request};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::exec::{Engine, EngineOptions, FinishReason, Runner};
use tandem_engine::model::v41::{Config, ModelWeights, Resident};
use tandem_engine::weights::{Content, Share, Source};
use tandem_hal::null::Counted;
use tandem_hal::{Device, Place, Rule};

/// A prompt, and the trailing tokens of it that must run through all layers: a window for the last
/// layer, and a window less one for each of the 19 between it and the last compressed source.
const PROMPT: u64 = 65_536;
const TAIL: u64 = 128 + 19 * 127;

/// Every launch between the prompt and its first token, by operator.
struct Cost {
    by_operator: BTreeMap<&'static str, Counted>,
    /// The engine's own count.
    layer_rows: u64,
}

impl Cost {
    fn rows(&self, operator: &str) -> u64 {
        self.by_operator[operator].rows
    }

    /// Of the operators that `counts` says.
    fn flops(&self, counts: impl Fn(&str) -> bool) -> f64 {
        let counted = self.by_operator.iter().filter(|(operator, _)| counts(operator));
        counted.map(|(_, counted)| counted.cost.flops).sum()
    }
}

fn prefill(skip_upper_half: bool) -> Cost {
    let null = model_support::null();
    let device: Arc<dyn Device> = Arc::new(null.clone());
    let config = Config::named("v4.1-flash").unwrap();
    let options = EngineOptions {
        sequences: 1,
        step_tokens: 4096,
        chunk_tokens: 4096,
        pages: 2048,
        skip_upper_half,
        ..options()
    };
    let source =
        Source { content: Content::Unspecified, share: Share::WHOLE, tables: Place::Pinned };
    let map = vec![0; config.vocab_size];
    let weights =
        ModelWeights::load(device.as_ref(), &config, (&map, true), &source, &mut |_| {}).unwrap();
    let resident = Resident::new(device.as_ref(), &config, weights, &options, 2 << 30).unwrap();
    let runner = Runner::new(&device, resident, &options, Rule::Standard).unwrap();
    let mut engine = Engine::new(runner, options).unwrap();
    assert_eq!(null.counted().launches, 0, "loading and planning launch nothing");
    let id = engine.add(request(prompt(0, PROMPT), 1)).unwrap();
    let answer = finish(&mut engine).remove(&id).unwrap();
    assert_eq!((answer.tokens.len(), answer.finish), (1, Some(FinishReason::Length)));
    let work = engine.work();
    assert_eq!((work.steps, work.rows), (PROMPT / 4096, PROMPT));
    Cost { by_operator: null.counted_by_operator(), layer_rows: work.layer_rows }
}

#[test]
fn a_long_prompt_costs_at_most_52_hundredths_of_its_full_depth() {
    let (full, saved) = (prefill(false), prefill(true));
    // Each layer attends and visits its experts once per row that runs it.
    let layers = |rows| 20 * PROMPT + 20 * rows;
    for operator in ["attn.sparse", "moe.expert_up", "moe.expert_down"] {
        assert_eq!(full.rows(operator), layers(PROMPT), "{operator}");
        assert_eq!(saved.rows(operator), layers(TAIL), "{operator}");
    }
    assert_eq!((full.layer_rows, saved.layer_rows), (layers(PROMPT), layers(TAIL)));
    // The last compressed source makes its entries of every token.
    assert_eq!(full.rows("kv.store"), saved.rows("kv.store"));
    let share = |counts: &dyn Fn(&str) -> bool| saved.flops(counts) / full.flops(counts);
    let (whole, matrices) = (share(&|_| true), share(&|operator| operator != "index.select"));
    println!("operations: {whole:.4} of full depth, {matrices:.4} without index scores");
    println!("layer rows: {:.4}", saved.layer_rows as f64 / full.layer_rows as f64);
    assert!(saved.layer_rows * 100 <= full.layer_rows * 52);
    assert!(whole <= 0.52, "{whole}");
    // The n-gram memory and three of the four compressed sources lie below the middle, so without
    // the scores, which grow with the square of the prompt and lie above, it is a little more.
    assert!(matrices <= 0.525, "{matrices}");
}
