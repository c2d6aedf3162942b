//! Drafts that are looked up in what a request has already.

mod engine_support;

use engine_support::table::{Law, engine};
use engine_support::{Answer, Drafts, FakeModel, answers, options, prompt, request};
use tandem_engine::exec::{DraftSource, Engine, EngineOptions, Request};
use tandem_engine::sample::SamplingParameters;
use tandem_hal::Rule;

fn looking_up(draft_tokens: u64) -> EngineOptions {
    EngineOptions { drafts: DraftSource::Ngram, draft_tokens, ..options() }
}

#[test]
fn text_that_repeats_is_taken_in_fewer_steps() {
    // Seven tokens over and over, but for one now and then.
    let script: Vec<_> = (0..400).map(|at| if at % 60 == 59 { 50 } else { at % 7 }).collect();
    let run = |options| {
        let mut model = FakeModel::new(Drafts::Wrong);
        model.script = Some(script.clone());
        let mut engine = Engine::new(model, options).unwrap();
        let requests = (0..3).map(|n| request(prompt(n, 20 + n), 300)).collect();
        let answers = answers(&mut engine, requests);
        (answers, engine.work())
    };
    let (plain, plain_work) = run(EngineOptions { draft_tokens: 0, ..options() });
    let (drafted, work) = run(looking_up(5));
    for (plain, drafted) in plain.iter().zip(&drafted) {
        assert_eq!(plain.tokens, drafted.tokens);
        let usage = drafted.usage;
        assert!(usage.accepted_tokens > 200, "{usage:?}");
        assert!(usage.accepted_tokens < usage.drafted_tokens, "{usage:?}");
    }
    assert!(work.steps * 3 < plain_work.steps, "{} and {}", work.steps, plain_work.steps);
    let accepted: u64 = drafted.iter().map(|answer| answer.usage.accepted_tokens).sum();
    assert_eq!((work.accepted_tokens, work.accepted_at.iter().sum()), (accepted, accepted));
}

fn tokens(law: Law, options: EngineOptions, sampling: &SamplingParameters) -> Vec<Answer> {
    // What the draft stages would say is never asked for.
    let nobody: Law = |_, _| panic!("no draft stage runs");
    let options = EngineOptions { sequences: 64, step_tokens: 64 * 17, ..options };
    let mut engine = engine((3, Rule::Block), (law, nobody), options);
    let make = |seed| Request {
        sampling: SamplingParameters { seed: Some(seed), ..sampling.clone() },
        ..request(vec![0, 1, 2, 0, 1], 12)
    };
    answers(&mut engine, (0..800).map(make).collect())
}

/// Better than the same law: whatever a request asks for, its tokens are those without drafts, since
/// every row draws with the number of its own position.
#[test]
fn sampled_tokens_are_the_same_and_so_is_their_law() {
    let shares = [0.5, 0.3, 0.2];
    let law: Law = |_, _| vec![0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
    let tempered = SamplingParameters { temperature: 1.0, ..Default::default() };
    let plain = tokens(law, EngineOptions { draft_tokens: 0, ..options() }, &tempered);
    let drafted = tokens(law, looking_up(5), &tempered);
    let mut counts = [0u64; 3];
    let (mut accepted, mut verified) = (0, 0);
    for (plain, drafted) in plain.iter().zip(&drafted) {
        assert_eq!(plain.tokens, drafted.tokens);
        accepted += drafted.usage.accepted_tokens;
        verified += drafted.usage.drafted_tokens;
        drafted.tokens[1..].iter().for_each(|id| counts[*id as usize] += 1);
    }
    assert!(accepted > 1_000 && accepted < verified, "{accepted} of {verified}");
    let total = counts.iter().sum::<u64>() as f64;
    assert_eq!(total, 800.0 * 11.0);
    for (count, share) in counts.into_iter().zip(shares) {
        let deviation = (total * share * (1.0 - share)).sqrt();
        assert!((count as f64 - total * share).abs() < 5.0 * deviation, "{counts:?}");
    }
}

#[test]
fn greedy_tokens_penalties_and_log_probabilities_are_the_same() {
    let law: Law = |id, at| vec![1.0, (u64::from(id) + at / 5 % 2) as f32, 1.5];
    let samplings = [
        SamplingParameters::default(),
        SamplingParameters { frequency_penalty: 0.4, log_probs: Some(2), ..Default::default() },
        SamplingParameters { temperature: 0.7, top_k: 2, ..Default::default() },
    ];
    for sampling in samplings {
        let plain = tokens(law, EngineOptions { draft_tokens: 0, ..options() }, &sampling);
        for draft_tokens in [1, 5, 16] {
            let drafted = tokens(law, looking_up(draft_tokens), &sampling);
            for (plain, drafted) in plain.iter().zip(&drafted) {
                assert_eq!(
                    (&plain.tokens, &plain.log_probs),
                    (&drafted.tokens, &drafted.log_probs)
                );
                assert!(drafted.usage.drafted_tokens > 0);
            }
        }
    }
}

#[test]
fn more_than_can_be_looked_up_is_refused() {
    let engine = Engine::new(FakeModel::new(Drafts::Right), looking_up(17));
    let error = engine.err().expect("seventeen drafts are refused").to_string();
    assert_eq!(error, "draft tokens: 17 asked for, at most 16 are looked up");
}
