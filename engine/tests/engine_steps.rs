//! The sequence engine over a model without arithmetic: what is answered, whatever else runs.

mod engine_support;

use engine_support::{Answer, Drafts, FakeModel, answers, finish, options, prompt, request};
use proptest::prelude::*;
use tandem_engine::exec::{DraftSource, Engine, EngineOptions, FinishReason, Request, UpperHalf};
use tandem_engine::sample::{Draws, SamplingParameters};

fn engine(drafts: Drafts, options: EngineOptions) -> Engine<FakeModel> {
    Engine::new(FakeModel::new(drafts), options).unwrap()
}

/// The answer without a cache, a batch or drafts.
fn expected(request: &Request) -> Vec<u32> {
    let greedy = request.sampling.is_greedy();
    let draws = Draws::new(request.sampling.seed.unwrap_or(0));
    let tokens = request.max_tokens.unwrap();
    FakeModel::new(Drafts::Right).answer(&request.prompt, tokens, greedy, draws)
}

#[test]
fn c054_drafts_change_no_token() {
    let requests: Vec<_> =
        [1, 2, 63, 64, 127, 128, 129, 200].map(|n| request(prompt(n, n), 64)).into();
    for drafts in [Drafts::Right, Drafts::Wrong, Drafts::WrongLast, Drafts::Mixed] {
        for draft_tokens in 0..=5 {
            let mut engine = engine(drafts, EngineOptions { draft_tokens, ..options() });
            for (answer, request) in answers(&mut engine, requests.clone()).iter().zip(&requests) {
                assert_eq!(answer.tokens, expected(request), "{drafts:?}, {draft_tokens} drafts");
                assert_eq!(answer.finish, Some(FinishReason::Length));
                assert!(answer.usage.accepted_tokens <= answer.usage.drafted_tokens);
                let accepted = answer.usage.accepted_tokens;
                match drafts {
                    Drafts::Right => assert_eq!(accepted > 0, draft_tokens > 0),
                    Drafts::Wrong => assert_eq!(accepted, 0),
                    Drafts::WrongLast | Drafts::Mixed => {}
                }
            }
        }
    }
}

#[test]
fn right_drafts_save_steps_and_wrong_ones_cost_none() {
    let steps = |drafts, draft_tokens| {
        let mut engine = engine(drafts, EngineOptions { draft_tokens, ..options() });
        answers(&mut engine, vec![request(prompt(1, 10), 60)]);
        engine.work().steps
    };
    assert_eq!(steps(Drafts::Right, 0), 60);
    // The first token comes with the prompt, then six a step.
    assert_eq!(steps(Drafts::Right, 5), 1 + 10);
    assert_eq!(steps(Drafts::Wrong, 5), 60);
}

#[test]
fn c056_a_stop_inside_an_accepted_block_ends_the_answer() {
    let run = |max_tokens| {
        let mut model = FakeModel::new(Drafts::Right);
        model.script = Some([vec![0; 5], vec![10, 11, 12, 20, 21, 22, 23]].concat());
        let mut engine = Engine::new(model, options()).unwrap();
        let request = Request { stop_ids: vec![12], ..request(prompt(3, 5), max_tokens) };
        answers(&mut engine, vec![request]).remove(0)
    };
    let stopped = run(5);
    assert_eq!((stopped.tokens, stopped.finish), (vec![10, 11], Some(FinishReason::Stop(12))));
    // Three tokens were generated, the first of them with the prompt.
    assert_eq!(stopped.usage.generated_tokens, 3);
    assert_eq!((stopped.usage.drafted_tokens, stopped.usage.accepted_tokens), (2, 2));
    let cut = run(2);
    assert_eq!((cut.tokens, cut.finish), (vec![10, 11], Some(FinishReason::Length)));
}

#[test]
fn c057_metrics_end_with_the_text() {
    let mut model = FakeModel::new(Drafts::Right);
    // One token with the prompt; then a step that accepts 1 2 EOS 4 5 and a bonus.
    model.script = Some(vec![0, 0, 9, 1, 2, 50, 4, 5, 6]);
    let mut engine = Engine::new(model, options()).unwrap();
    let request = Request { stop_ids: vec![50], ..request(vec![7, 7], 100) };
    let answer = answers(&mut engine, vec![request]).remove(0);
    assert_eq!(answer.tokens, [9, 1, 2]);
    assert_eq!(answer.usage.generated_tokens, 4);
    assert_eq!((answer.usage.drafted_tokens, answer.usage.accepted_tokens), (3, 3));
    assert_eq!((engine.work().drafted_tokens, engine.work().accepted_tokens), (3, 3));
}

#[test]
fn c073_one_log_probability_for_each_token() {
    let sampling = SamplingParameters { log_probs: Some(1), ..Default::default() };
    for drafts in [Drafts::Right, Drafts::Mixed, Drafts::Wrong] {
        let request = Request { sampling: sampling.clone(), ..request(prompt(8, 20), 23) };
        let answer = answers(&mut engine(drafts, options()), vec![request]).remove(0);
        let chosen: Vec<_> = answer.log_probs.iter().map(|row| -row.chosen as u32).collect();
        assert_eq!(chosen, answer.tokens, "{drafts:?}");
    }
}

#[test]
fn c075_seeds_decide_whatever_else_runs() {
    let seeded = |seed| Request {
        sampling: SamplingParameters { temperature: 0.8, seed, ..Default::default() },
        ..request(prompt(5, 40), 64)
    };
    for seed in [0, 42, 1 << 63] {
        let alone = answers(&mut engine(Drafts::Right, options()), vec![seeded(Some(seed))]);
        let mut busy = engine(Drafts::Mixed, EngineOptions { step_tokens: 50, ..options() });
        let others = vec![seeded(None), seeded(Some(7)), seeded(Some(seed)), seeded(Some(seed))];
        let together = answers(&mut busy, others);
        assert_eq!(alone[0].tokens, expected(&seeded(Some(seed))));
        assert_eq!(
            (&together[2].tokens, &together[3].tokens),
            (&alone[0].tokens, &alone[0].tokens)
        );
        assert_ne!(together[1].tokens, alone[0].tokens);
        assert_ne!(together[0].tokens, alone[0].tokens);
    }
}

#[test]
fn c077_c078_c061_what_cannot_run_is_refused() {
    let small = EngineOptions { pages: 1, context_tokens: 256, ..options() };
    let mut engine = engine(Drafts::Right, small);
    let refusal = engine.add(request(prompt(0, 100), 1)).unwrap_err().to_string();
    assert!(refusal.contains("100 tokens") && refusal.contains("holds 64"), "{refusal}");
    assert!(engine.add(request(Vec::new(), 1)).is_err());
    assert!(
        engine.add(request(prompt(0, 3), 0)).unwrap_err().to_string().starts_with("max_tokens")
    );
    assert!(engine.add(request(vec![97], 1)).unwrap_err().to_string().contains("vocabulary of 97"));
    let odd = SamplingParameters { temperature: f32::NAN, ..Default::default() };
    assert!(engine.add(Request { sampling: odd, ..request(vec![1], 1) }).is_err());
    assert!(engine.is_idle());
    // The next is served at once; one that wants more than there is stops at the end of it.
    let asked = [Some(10), Some(100), Some(u64::MAX), None];
    let requests: Vec<_> = asked
        .iter()
        .map(|max_tokens| Request { max_tokens: *max_tokens, ..request(prompt(2, 10), 1) })
        .collect();
    let answers = answers(&mut engine, requests);
    let lengths: Vec<_> = answers.iter().map(|answer| answer.tokens.len()).collect();
    assert_eq!(lengths, [10, 54, 54, 54]);
    assert!(answers.iter().all(|answer| answer.finish == Some(FinishReason::Length)));
}

#[test]
fn c062_running_out_of_pages_hurts_the_youngest_only() {
    let few = EngineOptions { pages: 8, sequences: 4, ..options() };
    let mut engine = engine(Drafts::Mixed, few);
    let requests: Vec<_> = (0..4).map(|n| request(prompt(n, 120), 130)).collect();
    let answers = answers(&mut engine, requests.clone());
    for (answer, request) in answers.iter().zip(&requests) {
        assert_eq!(answer.tokens, expected(request));
    }
    assert_eq!(answers[0].usage.restarts, 0, "the oldest is never set back");
    assert!(engine.work().restarts > 0);
    assert_eq!(engine.free_pages().compressed, 8);
}

#[test]
fn c060_hanging_up_frees_everything() {
    let mut engine = engine(Drafts::Mixed, EngineOptions { step_tokens: 64, ..options() });
    let free = engine.free_pages();
    let ids: Vec<_> = (0..50).map(|n| engine.add(request(prompt(n, 100), 1000)).unwrap()).collect();
    for (step, id) in ids.iter().enumerate() {
        assert!(engine.cancel(*id));
        assert!(!engine.cancel(*id), "a second time there is none");
        engine.step().unwrap();
        engine.check().unwrap();
        assert!(engine.running() + engine.waiting() == 49 - step);
    }
    assert_eq!((engine.free_pages(), engine.running(), engine.waiting()), (free, 0, 0));
    let after = request(prompt(99, 30), 20);
    assert_eq!(answers(&mut engine, vec![after.clone()])[0].tokens, expected(&after));
}

#[test]
fn a_cancelled_request_says_so_once() {
    let mut engine = engine(Drafts::Right, options());
    let id = engine.add(request(prompt(1, 10), 50)).unwrap();
    engine.step().unwrap();
    engine.cancel(id);
    assert!(!engine.is_idle());
    let answers = finish(&mut engine);
    assert_eq!(answers[&id].finish, Some(FinishReason::Cancelled));
    assert!(answers[&id].tokens.is_empty());
}

#[test]
fn logits_that_are_no_numbers_end_their_own_request_only() {
    let mut model = FakeModel::new(Drafts::Mixed);
    model.poison = Some(95);
    let mut engine = Engine::new(model, options()).unwrap();
    let bad = Request { drafts: true, ..request([prompt(1, 30), vec![95]].concat(), 20) };
    let good = request(prompt(2, 31), 20);
    let answers = answers(&mut engine, vec![good.clone(), bad, good.clone()]);
    assert_eq!(answers[1].finish, Some(FinishReason::NotANumber));
    for at in [0, 2] {
        // The tokens that the model itself says may be poisonous too; compare what came before.
        let expected = expected(&good);
        assert_eq!(answers[at].tokens, expected[..answers[at].tokens.len()]);
        let poison = expected.iter().position(|id| *id == 95);
        assert_eq!(answers[at].tokens.len(), poison.map_or(20, |at| at + 1));
    }
}

#[test]
fn a_failed_step_costs_nothing_but_its_time() {
    for fails_at in 1..=8 {
        let mut model = FakeModel::new(Drafts::Mixed);
        model.fails_at = Some(fails_at);
        let mut engine =
            Engine::new(model, EngineOptions { step_tokens: 48, ..options() }).unwrap();
        let requests: Vec<_> = (0..3).map(|n| request(prompt(n, 60), 12)).collect();
        let ids: Vec<_> = requests.iter().map(|r| engine.add(r.clone()).unwrap()).collect();
        let (mut answers, mut failures) = (std::collections::HashMap::new(), 0);
        while !engine.is_idle() {
            match engine.step() {
                Ok(events) => engine_support::collect(&mut answers, events),
                Err(_) => failures += 1,
            }
            engine.check().unwrap();
        }
        assert_eq!(failures, 1, "step {fails_at}");
        for (id, request) in ids.iter().zip(&requests) {
            assert_eq!(answers[id].tokens, expected(request));
        }
    }
}

#[test]
fn the_upper_half_skips_what_nothing_reads() {
    // The release's layers: half of them, but for the last 2541 tokens.
    let run = |prompt_tokens, skip_upper_half, step_tokens| {
        let mut model = FakeModel::new(Drafts::Right);
        model.geometry.upper = Some(UpperHalf { first_layer: 20, tail_tokens: 2541 });
        model.thorough = false;
        let options = EngineOptions {
            pages: 2048,
            skip_upper_half,
            step_tokens,
            chunk_tokens: 4096,
            ..options()
        };
        let mut engine = Engine::new(model, options).unwrap();
        let asked = request(prompt(4, prompt_tokens), 1);
        let tokens = answers(&mut engine, vec![asked]).remove(0).tokens;
        let work = engine.work();
        (tokens, work.layer_rows as f64 / (work.rows * 40) as f64)
    };
    let (tokens, share) = run(3000, true, 512);
    let (all, whole) = run(3000, false, 512);
    assert_eq!((tokens, whole), (all, 1.0));
    assert!((share - (0.5 + 0.5 * 2541.0 / 3000.0)).abs() < 1e-9, "{share}");
}

#[test]
fn chunks_of_one_token_past_the_skipped_part() {
    let options = EngineOptions {
        sequences: 1,
        step_tokens: 2,
        chunk_tokens: 1,
        draft_tokens: 1,
        pages: 6,
        ..options()
    };
    let asked = request(prompt(0, 283), 2);
    let answers = answers(&mut engine(Drafts::Right, options), vec![asked.clone()]);
    assert_eq!(answers[0].tokens, expected(&asked));
}

#[test]
fn c090_padded_steps_change_nothing() {
    let padded =
        EngineOptions { step_sizes: vec![4, 8], draft_tokens: 0, sequences: 12, ..options() };
    for count in [3, 4, 5, 7, 9] {
        let requests: Vec<_> = (0..count).map(|n| request(prompt(n, 20), 10)).collect();
        let mut engine = engine(Drafts::Right, padded.clone());
        for (answer, request) in answers(&mut engine, requests.clone()).iter().zip(&requests) {
            assert_eq!(answer.tokens, expected(request));
        }
        let decode = engine.model().shapes[3];
        assert_eq!(
            decode,
            if count <= 4 {
                4
            } else if count <= 8 {
                8
            } else {
                9
            }
        );
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let refused = |options| match Engine::new(FakeModel::new(Drafts::Right), options) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    let asked = EngineOptions { draft_tokens: 6, ..options() };
    assert_eq!(refused(asked), "draft tokens: 6 asked for, the model drafts blocks of 5");
    assert!(refused(EngineOptions { step_tokens: 47, ..options() }).contains("at least 48"));
    for step_sizes in [vec![0, 1], vec![2, 2], vec![9]] {
        let problem = refused(EngineOptions { step_sizes, ..options() });
        assert!(problem.ends_with("they ascend from 1 to 8"), "{problem}");
    }
    for least_survival in [-0.1, 1.1, f64::NAN] {
        let problem = refused(EngineOptions { least_survival, ..options() });
        assert!(problem.ends_with("is not from 0 to 1"), "{problem}");
    }
    let (drafts, least_survival) = (DraftSource::Ngram, 0.5);
    let problem = refused(EngineOptions { drafts, least_survival, ..options() });
    assert!(problem.starts_with("least survival: only the model's own stages"), "{problem}");
    assert!(refused(EngineOptions { pages: 0, ..options() }).starts_with("cache"));
    assert!(refused(EngineOptions { pages: 1 << 26, ..options() }).contains("31 bits"));
}

#[test]
fn ten_thousand_requests_come_and_go() {
    let options = EngineOptions { sequences: 16, step_tokens: 192, pages: 40, ..options() };
    let mut model = FakeModel::new(Drafts::Mixed);
    model.thorough = false;
    let mut engine = Engine::new(model, options).unwrap();
    let free = engine.free_pages();
    let make = |n: u64| request(prompt(n, 1 + n % 37), 1 + n % 11);
    let mut answers = std::collections::HashMap::new();
    let mut cancelled = 0;
    for n in 0..10_000 {
        let id = engine.add(make(n)).unwrap();
        assert_eq!(id.0, n);
        if n % 13 == 5 {
            cancelled += u64::from(engine.cancel(tandem_engine::exec::RequestId(n - n % 3)));
        }
        if n % 3 == 0 {
            engine_support::collect(&mut answers, engine.step().unwrap());
        }
        if n % 500 == 0 {
            engine.check().unwrap();
        }
    }
    answers.extend_from(finish(&mut engine));
    assert_eq!((answers.len(), engine.free_pages()), (10_000, free));
    let ended = |reason| answers.values().filter(|a| a.finish == Some(reason)).count() as u64;
    assert_eq!(ended(FinishReason::Cancelled), cancelled);
    assert_eq!(ended(FinishReason::Length), 10_000 - cancelled);
    for (id, answer) in &answers {
        let expected = expected(&make(id.0));
        assert_eq!(answer.tokens, expected[..answer.tokens.len()]);
    }
}

trait ExtendFrom {
    fn extend_from(&mut self, later: Self);
}

impl ExtendFrom for std::collections::HashMap<tandem_engine::exec::RequestId, Answer> {
    /// Answers that began earlier go on.
    fn extend_from(&mut self, later: Self) {
        for (id, answer) in later {
            let whole = self.entry(id).or_default();
            assert_eq!(whole.finish, None);
            whole.tokens.extend(answer.tokens);
            (whole.finish, whole.usage) = (answer.finish, answer.usage);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_batch_any_chunks_any_drafts(
        lengths in prop::collection::vec((1u64..300, 1u64..40, any::<bool>(), any::<bool>()), 1..7),
        (sequences, spare, chunk_tokens) in (1u64..7, 0u64..200, 1u64..150),
        (draft_tokens, kind, extra_pages) in (0u64..6, 0usize..4, 0u64..6),
        sizes in prop::collection::btree_set(1u64..7, 0..4),
    ) {
        let kind = [Drafts::Right, Drafts::Wrong, Drafts::WrongLast, Drafts::Mixed][kind];
        let options = EngineOptions {
            sequences,
            step_tokens: sequences * (1 + draft_tokens) + spare,
            chunk_tokens,
            pages: 6 + extra_pages,
            draft_tokens,
            step_sizes: sizes.into_iter().filter(|size| *size <= sequences).collect(),
            ..options()
        };
        let requests: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(n, (tokens, max_tokens, drafts, sampled))| Request {
                drafts: *drafts,
                sampling: SamplingParameters {
                    temperature: if *sampled { 0.7 } else { 0.0 },
                    seed: Some(n as u64),
                    ..Default::default()
                },
                ..request(prompt(n as u64, *tokens), *max_tokens)
            })
            .collect();
        let mut engine = engine(kind, options);
        for (answer, request) in answers(&mut engine, requests.clone()).iter().zip(&requests) {
            prop_assert_eq!(&answer.tokens, &expected(request));
        }
    }
}
