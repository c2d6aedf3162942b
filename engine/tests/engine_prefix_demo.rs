//! A hit of the prefix cache on the demo model: the same tokens, log-probabilities and drafts, to
//! the bit, as a cold run without graphs.

mod engine_support;
mod model_support;

use engine_support::{Answer, answers, prompt};
use model_support::demo;
use model_support::watched::Watched;
use std::sync::Arc;
use tandem_engine::exec::{Engine, EngineOptions, Replay, Request, Runner};
use tandem_engine::sample::SamplingParameters;
use tandem_hal::{Device, Rule};
use tandem_reference::RefDevice;

fn engine(resume_points: u64, replay: Replay) -> Engine<Watched> {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 2,
        step_tokens: 96,
        pages: 64,
        context_tokens: 1024,
        resume_points,
        replay,
        step_sizes: if resume_points > 0 { vec![1, 2] } else { vec![] },
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let mut runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    runner.capture(&options).unwrap();
    Engine::new(Watched::new(runner), options).unwrap()
}

/// An answer and the blocks that were drafted for it.
fn ask(engine: &mut Engine<Watched>, prompt: &[u32]) -> (Answer, Vec<Vec<u32>>) {
    let sampling = SamplingParameters { log_probs: Some(2), ..Default::default() };
    let request = Request { sampling, ..engine_support::request(prompt.to_vec(), 8) };
    let before = engine.model().blocks.len();
    let answer = answers(engine, vec![request]).remove(0);
    (answer, engine.model().blocks[before..].to_vec())
}

/// Asks both the same: tokens, log-probabilities and drafts are equal. Answers how many tokens of each the
/// second had cached.
fn assert_alike(
    cold: &mut Engine<Watched>,
    hot: &mut Engine<Watched>,
    prompts: &[Vec<u32>],
) -> Vec<u64> {
    let mut cached = Vec::new();
    for (at, prompt) in prompts.iter().enumerate() {
        let (expected, expected_blocks) = ask(cold, prompt);
        let (answer, blocks) = ask(hot, prompt);
        assert_eq!(answer.tokens, expected.tokens, "prompt {at}");
        assert_eq!(answer.log_probs, expected.log_probs, "prompt {at}, to the last bit");
        assert_eq!(blocks, expected_blocks, "prompt {at}, its drafts");
        cached.push(answer.cached_tokens);
    }
    cached
}

#[test]
fn c058_a_hit_is_a_cold_run_to_the_bit() {
    let (mut cold, mut hot) = (engine(0, Replay::Exact), engine(8, Replay::Exact));
    // Once more, forks below, at and above the window, at odd lengths, and behind a skipped half.
    let long = prompt(7, 600);
    let prompts = [
        prompt(0, 133),
        prompt(0, 133),
        prompt(0, 133),
        [&prompt(0, 131)[..], &prompt(1, 30)].concat(),
        [&prompt(0, 129)[..], &prompt(2, 31)].concat(),
        [&prompt(0, 67)[..], &prompt(3, 90)].concat(),
        [&prompt(0, 65)[..], &prompt(4, 9)].concat(),
        long.clone(),
        [&long[..], &prompt(5, 41)].concat(),
        [&long[..300], &prompt(6, 77)].concat(),
        [&long[..301], &prompt(8, 70)].concat(),
    ];
    let cached = assert_alike(&mut cold, &mut hot, &prompts);
    println!("cached tokens: {cached:?}");
    assert_eq!(cached[..3], [0, 128, 128]);
    assert_eq!((cached[3], cached[4]), (128, 128));
    assert_eq!((cached[6], cached[7]), (64, 0), "the fork at 64 was met before");
    assert_eq!((cached[8], cached[10]), (576, 256));
    assert!(hot.model().runner.replays() > 0 && cold.model().runner.replays() == 0);
}

/// Under a bound one window is computed again, whatever the layers above it would need.
#[test]
fn a_bounded_replay_is_less_work_and_not_the_same_bits() {
    let (mut cold, mut bounded) = (engine(0, Replay::Exact), engine(8, Replay::Bounded));
    let long = prompt(7, 600);
    let longer = [&long[..], &prompt(5, 45)].concat();
    let (expected, _) = ask(&mut cold, &longer);
    ask(&mut bounded, &long);
    let before = bounded.work().prompt_rows;
    let (answer, _) = ask(&mut bounded, &longer);
    // 576 tokens are whole pages that match, less a window.
    assert_eq!(answer.cached_tokens, 448);
    assert_eq!(bounded.work().prompt_rows - before, 645 - 448);
    assert_ne!(answer.log_probs, expected.log_probs);
    bounded.check().unwrap();
    // Up to one window nothing is left out.
    let short = prompt(0, 133);
    let (expected, expected_blocks) = ask(&mut cold, &short);
    for _ in 0..2 {
        let (answer, blocks) = ask(&mut bounded, &short);
        assert_eq!(
            (answer.tokens, answer.log_probs),
            (expected.tokens.clone(), expected.log_probs.clone())
        );
        assert_eq!((answer.cached_tokens, blocks), (0, expected_blocks.clone()));
    }
}

/// The folder of one engine is the start of the next: what it finds there is a cold run too, drafts
/// included, and the bounded replay finds its own alone.
#[test]
fn a_hit_of_what_an_earlier_engine_kept_is_a_cold_run_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let long = prompt(7, 600);
    let prompts = [
        prompt(0, 133),
        [&prompt(0, 131)[..], &prompt(1, 30)].concat(),
        [&long[..], &prompt(5, 41)].concat(),
        [&long[..300], &prompt(6, 77)].concat(),
    ];
    let mut first = engine(8, Replay::Exact);
    assert_eq!(first.keep_prefixes(folder.path(), "demo").unwrap(), Default::default());
    for prompt in [&prompts[0], &long] {
        ask(&mut first, prompt);
    }
    while first.save_prefixes().unwrap() {}
    drop(first);
    let (mut cold, mut hot) = (engine(0, Replay::Exact), engine(8, Replay::Exact));
    let restored = hot.keep_prefixes(folder.path(), "demo").unwrap();
    // Whole pages of 133 and 600 tokens with eight more each, but for the last, which nobody computes.
    assert_eq!((restored.tokens, restored.left_out), (128 + 576, 0));
    let cached = assert_alike(&mut cold, &mut hot, &prompts);
    // The last one's fork lies where no window was kept.
    assert_eq!(cached, [128, 128, 576, 0]);
    hot.check().unwrap();
    let refused = cold.keep_prefixes(folder.path(), "demo").unwrap_err().to_string();
    assert!(refused.contains("there is no prefix cache to keep"), "{refused}");
    let refused = hot.keep_prefixes(folder.path(), "demo").unwrap_err().to_string();
    assert!(refused.contains("before the first request"), "{refused}");
}
