//! The prefix cache over a model without arithmetic that checks every address, and every state that
//! a hit takes over: windows of both halves, compressed entries, the draft's context.

mod engine_support;

use engine_support::{Answer, Drafts, FakeModel, answers, finish, options, prompt, request};
use proptest::prelude::*;
use std::collections::HashMap;
use tandem_engine::exec::{Engine, EngineOptions, FinishReason, Request, RequestId, UpperHalf};
use tandem_engine::sample::Draws;

fn cached() -> EngineOptions {
    EngineOptions { resume_points: 16, ..options() }
}

fn engine(drafts: Drafts, options: EngineOptions) -> Engine<FakeModel> {
    Engine::new(FakeModel::new(drafts), options).unwrap()
}

/// The answer without a cache, a batch or drafts.
fn expected(request: &Request) -> Vec<u32> {
    let tokens = request.max_tokens.unwrap();
    FakeModel::new(Drafts::Right).answer(&request.prompt, tokens, true, Draws::new(0))
}

/// Runs one request and compares with a cold run.
fn ask(engine: &mut Engine<FakeModel>, prompt: &[u32]) -> Answer {
    let request = request(prompt.to_vec(), 12);
    let answer = answers(engine, vec![request.clone()]).remove(0);
    assert_eq!(answer.tokens, expected(&request));
    assert_eq!(answer.cached_tokens, answer.usage.cached_tokens);
    answer
}

/// C058: the same prompt three times, around a page, a window and the skipped upper half; the last
/// token is computed always.
#[test]
fn c058_the_same_prompt_again() {
    for tokens in [1, 63, 64, 65, 127, 128, 129, 133, 192, 255, 256, 257, 300, 511, 640, 900] {
        for drafts in [Drafts::Right, Drafts::Mixed] {
            let mut engine = engine(drafts, cached());
            let prompt = prompt(tokens, tokens);
            let hits: Vec<_> = (0..3).map(|_| ask(&mut engine, &prompt).cached_tokens).collect();
            let whole = (tokens - 1) / 64 * 64;
            assert_eq!(hits, [0, whole, whole], "{tokens} tokens");
        }
    }
}

/// C058: two prompts that share a prefix; the second time such a fork is met, it is a resume point.
#[test]
fn c058_a_shared_prefix_of_any_length() {
    for shared in [1, 63, 64, 100, 127, 128, 129, 191, 192, 300, 449, 700] {
        let mut engine = engine(Drafts::Mixed, cached());
        let ask_about = |engine: &mut Engine<FakeModel>, n: u64, more: u64| {
            ask(engine, &[prompt(0, shared), prompt(n, more)].concat()).cached_tokens
        };
        assert_eq!(ask_about(&mut engine, 1, 75), 0);
        let met = ask_about(&mut engine, 2, 400);
        assert!(met <= shared, "{met} of {shared}");
        let again = ask_about(&mut engine, 3, 77);
        assert!(again >= shared / 64 * 64 && again <= shared + 64, "{again} of {shared}");
    }
}

/// C059: what differs inside the last page, and is no longer than it, is never taken for another.
#[test]
fn c059_prompts_that_differ_within_a_page() {
    let mut engine = engine(Drafts::Right, cached());
    let common = prompt(0, 150);
    let [a, b] = [1, 2].map(|n| [common.clone(), prompt(n, 90)].concat());
    for (turn, prompt) in [&a, &b, &a, &b].into_iter().enumerate() {
        let answer = ask(&mut engine, prompt);
        let most = if turn < 2 { common.len() as u64 } else { prompt.len() as u64 };
        assert!(answer.cached_tokens <= most);
        assert_eq!(answer.cached_tokens > 0, turn >= 2, "turn {turn}");
    }
}

#[test]
fn the_next_turn_of_a_conversation_computes_what_is_new() {
    let mut engine = engine(Drafts::Mixed, EngineOptions { pages: 64, ..cached() });
    let mut conversation = prompt(0, 700);
    let mut before = 0;
    for turn in 1..6 {
        let rows = engine.work().rows;
        let answer = ask(&mut engine, &conversation);
        assert_eq!(answer.cached_tokens, before, "turn {turn}");
        let new = conversation.len() as u64 - before;
        // Twelve tokens, and the drafts that did not stand.
        assert!(engine.work().rows - rows <= new + 12 * 6, "turn {turn}");
        // What the last token left is not computed; a page that it would have filled is not there.
        before = (conversation.len() + answer.tokens.len() - 1) as u64 / 64 * 64;
        conversation.extend(&answer.tokens);
        conversation.extend(prompt(turn, 150));
    }
    let counts = engine.prefix_counts();
    assert!(counts.hit_tokens * 2 > counts.lookup_tokens, "{counts:?}");
}

#[test]
fn salt_separates() {
    let mut engine = engine(Drafts::Right, cached());
    let salted = |salt: &str| Request { cache_salt: salt.into(), ..request(prompt(0, 200), 3) };
    let mut hit = |salt| answers(&mut engine, vec![salted(salt)]).remove(0).cached_tokens;
    assert_eq!(
        (hit("a"), hit("b"), hit(""), hit("a"), hit("b"), hit("")),
        (0, 0, 0, 192, 192, 192)
    );
}

/// Pages of the cache are free for whoever wants them; those that are read are not.
#[test]
fn eviction_under_pressure_takes_what_nobody_reads() {
    let mut engine = engine(Drafts::Mixed, EngineOptions { pages: 12, sequences: 3, ..cached() });
    let pages = engine.free_pages().compressed;
    for round in 0..40 {
        // One of four prompts, beside two new ones.
        let old = request(prompt(round % 4, 200), 10);
        let new = |n| request(prompt(1000 + 2 * round + n, 180), 30);
        let requests = vec![old, new(0), new(1)];
        for (answer, request) in answers(&mut engine, requests.clone()).iter().zip(&requests) {
            assert_eq!(answer.tokens, expected(request), "round {round}");
        }
        assert_eq!(engine.free_pages().compressed, pages);
    }
    assert!(engine.prefix_counts().evicted_pages > 0);
}

/// A request that was set back finds what it computed before, unless others took it.
#[test]
fn c062_running_out_of_pages_with_a_cache() {
    let few = EngineOptions { pages: 8, sequences: 4, ..cached() };
    let mut engine = engine(Drafts::Mixed, few);
    let requests: Vec<_> = (0..4).map(|n| request(prompt(n % 2, 120), 130)).collect();
    let answers = answers(&mut engine, requests.clone());
    for (answer, request) in answers.iter().zip(&requests) {
        assert_eq!(answer.tokens, expected(request));
    }
    assert_eq!(answers[0].usage.restarts, 0, "the oldest is never set back");
    assert_eq!(engine.free_pages().compressed, 8);
}

/// What led to logits that are no numbers is nobody's prefix.
#[test]
fn no_numbers_leave_nothing_behind() {
    let mut model = FakeModel::new(Drafts::Right);
    model.poison = Some(95);
    let mut engine = Engine::new(model, cached()).unwrap();
    let poisoned = [prompt(1, 200), vec![95]].concat();
    for _ in 0..2 {
        let answer = answers(&mut engine, vec![request(poisoned.clone(), 5)]).remove(0);
        assert_eq!(answer.finish, Some(FinishReason::NotANumber));
        assert_eq!(answer.cached_tokens, 0);
    }
}

/// C060 with a cache: whatever hangs up, no page is lost.
#[test]
fn c060_hanging_up_with_a_cache() {
    let mut engine = engine(Drafts::Mixed, EngineOptions { step_tokens: 64, ..cached() });
    let free = engine.free_pages().compressed;
    let ids: Vec<_> =
        (0..50).map(|n| engine.add(request(prompt(n % 5, 100 + n), 1000)).unwrap()).collect();
    for id in ids {
        assert!(engine.cancel(id));
        engine.step().unwrap();
        engine.check().unwrap();
    }
    assert_eq!(engine.free_pages().compressed, free);
}

/// Two lower layers of the model are followed, as shallow as its upper ones.
fn shallow(drafts: Drafts, options: EngineOptions) -> Engine<FakeModel> {
    let mut model = FakeModel::new(drafts);
    model.geometry.upper = Some(UpperHalf { first_layer: 2, tail_tokens: 255 });
    (model.geometry.layers, model.lower_layers, model.thorough) = (4, 2, false);
    Engine::new(model, options).unwrap()
}

/// Where pages match without a window, the windows of all layers are computed from as far back as
/// they reach, and no further: 2 * 127 + 255 positions here.
#[test]
fn windows_are_computed_again_where_that_is_less() {
    let mut engine = shallow(Drafts::Mixed, cached());
    let shared = prompt(0, 1400);
    ask(&mut engine, &[&shared[..], &prompt(1, 200)].concat());
    // The fork: page 21 ends at 1344, the windows reach back to 835.
    let answer = ask(&mut engine, &[&shared[..], &prompt(2, 150)].concat());
    assert_eq!((answer.cached_tokens, engine.model().replayed_rows), (832, 1344 - 832));
    // Now there is a window.
    let answer = ask(&mut engine, &[&shared[..], &prompt(3, 90)].concat());
    assert_eq!((answer.cached_tokens, engine.model().replayed_rows), (1344, 1344 - 832));
    // A fork that is nearer to a resume point, or to the start, than its windows reach.
    let answer = ask(&mut engine, &[&shared[..500], &prompt(4, 90)].concat());
    assert_eq!((answer.cached_tokens, engine.model().replayed_rows), (0, 1344 - 832));
}

/// E0: with nine tenths of each prompt shared, at most 15 % are computed.
#[test]
fn shared_prefixes_are_computed_once() {
    let mut engine = engine(Drafts::Mixed, EngineOptions { sequences: 2, ..cached() });
    let shared = prompt(0, 1152);
    let mut computed = (0, 0);
    for n in 1..41 {
        let prompt = [shared.clone(), prompt(n, 128)].concat();
        let answer = answers(&mut engine, vec![request(prompt.clone(), 1)]).remove(0);
        computed.0 += prompt.len() as u64 - answer.cached_tokens;
        computed.1 += prompt.len() as u64;
    }
    let share = computed.0 as f64 / computed.1 as f64;
    println!("{:.1} % of the prompts' tokens are computed", share * 100.0);
    assert!(share <= 0.15, "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Any prompts that begin alike, chunks, drafts, pages and points, some hung up: every answer is
    /// that of a cold run.
    #[test]
    fn a_hit_is_a_cold_run(
        requests in prop::collection::vec(
            (0u64..3, 1u64..700, 0u64..4, 0u64..200, 1u64..70, 0u64..12),
            1..14
        ),
        (sequences, spare, chunk_tokens) in (1u64..5, 0u64..200, 1u64..300),
        (draft_tokens, kind, extra_pages, resume_points) in (0u64..6, 0usize..4, 0u64..12, 1u64..6),
    ) {
        let kind = [Drafts::Right, Drafts::Wrong, Drafts::WrongLast, Drafts::Mixed][kind];
        let options = EngineOptions {
            sequences,
            step_tokens: sequences * (1 + draft_tokens) + spare,
            chunk_tokens,
            pages: 16 + extra_pages,
            draft_tokens,
            resume_points,
            ..options()
        };
        let mut engine = shallow(kind, options);
        let mut asked: HashMap<RequestId, Request> = HashMap::new();
        let mut told = HashMap::new();
        for (family, shared, tail, more, max_tokens, steps) in requests {
            let ids = [prompt(family, shared), prompt(100 + tail, more)].concat();
            let request = request(ids, max_tokens);
            let id = engine.add(request.clone()).unwrap();
            asked.insert(id, request);
            for _ in 0..steps {
                engine_support::collect(&mut told, engine.step().unwrap());
                engine.check().unwrap();
            }
            if steps == 7 {
                engine.cancel(id);
            }
        }
        for (id, answer) in finish(&mut engine) {
            let whole: &mut Answer = told.entry(id).or_default();
            whole.tokens.extend(answer.tokens);
            whole.finish = answer.finish;
        }
        for (id, request) in asked {
            let answer = &told[&id];
            let expected = expected(&request);
            prop_assert_eq!(&answer.tokens, &expected[..answer.tokens.len()]);
            let whole = answer.finish == Some(FinishReason::Length);
            prop_assert!(!whole || answer.tokens.len() == expected.len());
        }
    }
}
