//! The demo model from requests to tokens, on the reference device.

mod engine_support;
mod model_support;

use engine_support::answers;
use model_support::watched::Watched;
use model_support::{DEMO, demo};
use std::sync::Arc;
use tandem_engine::exec::{Engine, EngineOptions, Request, Runner};
use tandem_engine::model::v41::Resident;
use tandem_engine::sample::SamplingParameters;
use tandem_engine::text::Tokenizer;
use tandem_engine::verify::GoldenFile;
use tandem_engine::weights::Files;
use tandem_hal::{Device, Rule};
use tandem_reference::{RefDevice, Setup};

fn engine(threads: usize, draft_tokens: u64, step_tokens: u64) -> Engine<Runner<Resident>> {
    let (runner, options) = runner(threads, draft_tokens, step_tokens);
    Engine::new(runner, options).unwrap()
}

fn runner(
    threads: usize,
    draft_tokens: u64,
    step_tokens: u64,
) -> (Runner<Resident>, EngineOptions) {
    let setup = Setup { threads: Some(threads), ..Setup::default() };
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(&setup));
    let options = EngineOptions {
        sequences: 4,
        step_tokens,
        pages: 32,
        context_tokens: 1024,
        draft_tokens,
        step_sizes: vec![2, 4],
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    (runner, options)
}

fn requests() -> Vec<Request> {
    let tokenizer = Tokenizer::from_file(format!("{DEMO}/tokenizer.json")).unwrap();
    let texts = ["The", "Once upon a time there was a", "def main():\n    print(", "In 1 2 3 4"];
    let request = |(at, text): (usize, &&str)| Request {
        prompt: [vec![0], tokenizer.encode(text).unwrap()].concat(),
        max_tokens: Some(20),
        drafts: true,
        sampling: SamplingParameters {
            log_probs: Some(2),
            temperature: if at == 2 { 0.8 } else { 0.0 },
            seed: Some(at as u64),
            ..Default::default()
        },
        ..Request::default()
    };
    texts.iter().enumerate().map(request).collect()
}

#[test]
fn c054_c076_tokens_do_not_depend_on_drafts_batches_chunks_or_threads() {
    let alone: Vec<_> = requests()
        .into_iter()
        .map(|request| answers(&mut engine(1, 0, 64), vec![request]).remove(0))
        .collect();
    let mut accepted = 0;
    for (threads, draft_tokens, step_tokens) in [(2, 0, 5), (1, 5, 64), (2, 5, 24), (1, 3, 17)] {
        let mut engine = engine(threads, draft_tokens, step_tokens);
        let together = answers(&mut engine, requests());
        for (at, (one, other)) in alone.iter().zip(&together).enumerate() {
            // A sampled request draws by another rule when drafts have a say.
            if at != 2 || draft_tokens == 0 {
                assert_eq!(one.tokens, other.tokens, "request {at}, {draft_tokens} drafts");
                assert_eq!(one.log_probs, other.log_probs, "request {at}, to the last bit");
            }
            assert_eq!(other.log_probs.len(), 20);
        }
        let work = engine.work();
        println!(
            "{draft_tokens} drafts: {} of {} stood",
            work.accepted_tokens, work.drafted_tokens
        );
        accepted += work.accepted_tokens;
        assert_eq!(engine.free_pages().compressed, 32);
    }
    assert!(accepted > 0, "the draft stages never agree with the model");
}

/// The tokens and log-probabilities of a greedy prompt are the same alone, five times, and among
/// 45 other requests, whatever its place among them.
#[test]
fn c076_greedy_text_alone_and_among_45_others() {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 50,
        step_tokens: 128,
        pages: 50,
        context_tokens: 64,
        draft_tokens: 0,
        step_sizes: vec![1, 50],
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), false, &options);
    let mut runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    runner.capture(&options).unwrap();
    let mut engine = Engine::new(runner, options).unwrap();
    let request = |prompt: Vec<u32>, temperature| Request {
        sampling: SamplingParameters { log_probs: Some(2), temperature, ..Default::default() },
        ..engine_support::request(prompt, 5)
    };
    let greedy: Vec<_> =
        (0..5).map(|at| request(engine_support::prompt(at, 2 + 3 * at), 0.0)).collect();
    let alone: Vec<_> =
        greedy.iter().map(|one| answers(&mut engine, vec![one.clone()]).remove(0)).collect();
    for _ in 1..5 {
        for (one, first) in greedy.iter().zip(&alone) {
            assert_eq!(answers(&mut engine, vec![one.clone()])[0], *first, "alone");
        }
    }
    let other = |at: u64| request(engine_support::prompt(100 + at, 1 + at % 4), (at % 3) as f32);
    let mut crowd: Vec<_> = (0..45).map(other).collect();
    for (at, one) in greedy.iter().enumerate() {
        crowd.insert(11 * at, one.clone());
    }
    let together = answers(&mut engine, crowd);
    for (at, alone) in alone.iter().enumerate() {
        assert_eq!(together[11 * at], *alone, "prompt {at} among others");
    }
}

/// Features run free here, so a place counts as long as its two best logits, and those of all
/// places before it, are this far apart.
const CLEAR: f32 = 0.4;

#[test]
fn the_first_block_is_the_golden_one() {
    let goldens = Files::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens"));
    // The second prompt is longer than the draft's context.
    for (name, clear) in [("single_token.safetensors", 5), ("text_300.safetensors", 1)] {
        let file = GoldenFile::read(&goldens, name).unwrap();
        let ids = |name| -> Vec<u32> {
            let list = file.integers(name).unwrap().unwrap();
            list.values.iter().map(|id| *id as u32).collect()
        };
        let (prompt, greedy, drafts) = (ids("ids"), ids("greedy"), ids("draft_tokens"));
        let logits = file.reals("draft_logits").unwrap().unwrap();
        let margin = |place: usize| {
            let mut row = logits.at(place).to_vec();
            row.sort_by(|a, b| b.total_cmp(a));
            row[0] - row[1]
        };
        assert_eq!((0..5).take_while(|place| margin(*place) > CLEAR).count(), clear);
        let (runner, options) = runner(2, 5, 64);
        let mut engine = Engine::new(Watched::new(runner), options).unwrap();
        let request = Request { prompt, max_tokens: Some(3), drafts: true, ..Request::default() };
        let answer = answers(&mut engine, vec![request]).remove(0);
        assert_eq!(answer.tokens[0], greedy[0], "{name}");
        let block = &engine.model().blocks[0];
        assert_eq!(block[..clear], drafts[..clear], "{name}");
    }
}
