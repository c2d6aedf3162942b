//! The server over the sequence engine and a model without arithmetic that checks every address:
//! seeds (C075), load (C076), few pages (C062), hanging up (C060), no numbers, a failing device.

use serde_json::{Value, json};
use tandem_engine::Error;
use tandem_engine::exec::{Engine, EngineOptions, Request};
use tandem_engine::serve::{EngineHandle, Sequences, ServerOptions};

use crate::engine_support::{Drafts, FakeModel, options};
use crate::server::TestServer;
use crate::support::{completion, merge};

fn model(drafts: Drafts) -> FakeModel {
    let mut model = FakeModel::new(drafts);
    model.geometry.vocab = 2048;
    model.geometry.context_tokens = 4096;
    model.thorough = false;
    model
}

fn server(model: FakeModel, options: EngineOptions) -> TestServer {
    server_with(model, options, vec![1])
}

fn server_with(model: FakeModel, options: EngineOptions, stop_ids: Vec<u32>) -> TestServer {
    let sequences = Sequences::new(Engine::new(model, options).unwrap(), stop_ids);
    TestServer::around(EngineHandle::spawn(sequences).unwrap(), ServerOptions::new("demo"))
}

fn prompt(seed: u64, tokens: u64, more: Value) -> Value {
    let ids: Vec<u64> = (0..tokens).map(|at| 3 + (seed * 7919 + at * 31) % 2000).collect();
    let mut body = completion(json!({ "prompt": ids, "max_tokens": 24 }));
    merge(&mut body, more);
    body
}

/// Text and usage of a reply that was not streamed; without how its drafts fared, which depends on what
/// they were and on restarts.
#[track_caller]
fn said(server: &TestServer, body: &Value) -> (Value, Value) {
    let body = server.completion(body).ok();
    (body["choices"][0].clone(), without_drafts(body["usage"].clone()))
}

fn without_drafts(mut usage: Value) -> Value {
    let details = &mut usage["completion_tokens_details"];
    *details = details["reasoning_tokens"].take();
    usage
}

#[test]
fn c075_seeds_at_any_load() {
    let mut greedy = Vec::new();
    for drafts in [Drafts::Right, Drafts::Mixed] {
        let server = server(model(drafts), options());
        let with = |more| prompt(1, 40, more);
        let seeded = with(json!({ "seed": 42, "temperature": 0.8 }));
        let alone = said(&server, &seeded);
        assert_eq!(alone, said(&server, &seeded), "twice alone");
        std::thread::scope(|scope| {
            for other in 2..12 {
                let server = &server;
                let more =
                    if other % 2 == 0 { json!({}) } else { json!({ "seed": 7, "max_tokens": 60 }) };
                scope.spawn(move || said(server, &prompt(other, 30 * other, more)));
            }
            for _ in 0..3 {
                assert_eq!(alone, said(&server, &seeded), "among others");
            }
        });
        for seed in [0, 43, 1_u64 << 63] {
            let other = with(json!({ "seed": seed, "temperature": 0.8 }));
            assert_ne!(alone.0, said(&server, &other).0, "seed {seed}");
            assert_eq!(said(&server, &other), said(&server, &other), "seed {seed}");
        }
        greedy.push(said(&server, &with(json!({ "temperature": 0 }))));
    }
    assert_eq!(greedy[0], greedy[1], "drafts do not change greedy text");
}

#[test]
fn c076_greedy_text_alone_and_among_45_others() {
    let options = EngineOptions { sequences: 50, step_tokens: 512, pages: 4096, ..options() };
    let server = server_with(model(Drafts::Mixed), options, vec![]);
    let greedy = |number: u64| prompt(number, 10 + 17 * number, json!({ "temperature": 0 }));
    let alone: Vec<_> = (0..5).map(|number| said(&server, &greedy(number))).collect();
    let repeated = |number: u64| {
        for _ in 0..5 {
            assert_eq!(said(&server, &greedy(number)), alone[number as usize], "{number}");
        }
    };
    (0..5).for_each(repeated);
    // They go on as long as their connections, so that all of them run all the time.
    let others: Vec<_> = (0..45)
        .map(|number| {
            let more = json!({ "stream": true, "max_tokens": 3500, "temperature": number % 3 });
            let body = prompt(100 + number, 1 + 3 * number, more).to_string();
            let mut connection = server.connect();
            connection.send_request("POST", "/v1/completions", Some(body.as_bytes()));
            connection
        })
        .collect();
    let all_run = |server: &TestServer| server.engine.load().running >= 45;
    server.wait_until("all others run", all_run);
    std::thread::scope(|scope| {
        for (number, alone) in (0..).zip(&alone) {
            let (server, greedy) = (&server, &greedy);
            scope.spawn(move || {
                repeated(number);
                let mut body = greedy(number);
                let usage = json!({ "include_usage": true });
                merge(&mut body, json!({ "stream": true, "stream_options": usage }));
                let streamed = server.completion(&body).events().joined();
                assert_eq!(json!(streamed.text), alone.0["text"]);
                assert_eq!(without_drafts(streamed.usage), alone.1);
            });
        }
    });
    assert!(all_run(&server), "some others ended too soon");
    drop(others);
    server.wait_until_free(4096);
}

#[test]
fn more_biases_than_the_engine_has_room_for_are_named() {
    let server = server(model(Drafts::Right), options());
    let most = options().biases;
    let biases = |count: u64| {
        let biases: serde_json::Map<_, _> =
            (0..count).map(|id| (id.to_string(), 1.into())).collect();
        server.completion(&prompt(1, 4, json!({ "logit_bias": biases })))
    };
    biases(most).ok();
    let (param, message) = biases(most + 1).refusal(400);
    assert_eq!(param.as_deref(), Some("logit_bias"));
    assert_eq!(message, format!("logit_bias: {} ids, at most {most}", most + 1));
}

#[test]
fn c062_running_out_of_pages_costs_time_alone() {
    let few = EngineOptions { pages: 8, sequences: 4, ..options() };
    let capacity = 8 * 64;
    let server = server(model(Drafts::Mixed), few.clone());
    assert_eq!(server.get("/v1/models").ok()["data"][0]["max_model_len"], capacity);
    let body = |number| prompt(number, 100, json!({ "temperature": 0, "max_tokens": 120 }));
    let alone: Vec<_> = (0..4).map(|number| said(&server, &body(number))).collect();
    std::thread::scope(|scope| {
        for (number, alone) in alone.iter().enumerate() {
            let server = &server;
            scope.spawn(move || assert_eq!(*alone, said(server, &body(number as u64))));
        }
    });
    server.wait_until_free(8);
    // What does not fit alone is refused, what runs into the end stops there.
    server.completion(&prompt(9, capacity, json!({}))).refusal(400);
    let last = said(&server, &prompt(9, capacity - 5, json!({ "max_tokens": 100 })));
    assert_eq!(last.1["completion_tokens"], 5);
}

#[test]
fn c060_hanging_up_frees_the_pages() {
    let server = server(model(Drafts::Wrong), options());
    let pages = server.engine.load().free_pages;
    let open: Vec<_> = (0..24)
        .map(|number| {
            let more = json!({ "max_tokens": 3000, "stream": number % 2 == 0 });
            let mut connection = server.connect();
            let body = prompt(number, 500, more).to_string();
            connection.send_request("POST", "/v1/completions", Some(body.as_bytes()));
            connection
        })
        .collect();
    server.wait_until("some run, some wait", |server| {
        let load = server.engine.load();
        load.running > 0 && load.waiting > 0 && load.free_pages < pages
    });
    drop(open);
    server.wait_until_free(pages);
    said(&server, &prompt(1, 10, json!({})));
}

#[test]
fn no_numbers_fail_their_own_request() {
    let mut poisoned = model(Drafts::Right);
    poisoned.poison = Some(2047);
    let server = server(poisoned, options());
    let good = prompt(1, 300, json!({ "temperature": 0 }));
    let alone = said(&server, &good);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| said(&server, &good));
        let bad = completion(json!({ "prompt": [5, 6, 2047] }));
        let (_, message) = server.completion(&bad).refusal(500);
        assert!(message.contains("no numbers"), "{message}");
        assert_eq!(alone, other.join().unwrap());
    });
}

#[test]
fn a_failing_device_fails_requests_with_a_reason() {
    let mut failing = model(Drafts::Right);
    failing.fails_at = Some(3);
    let server = server(failing, options());
    let streamed = server.completion(&prompt(1, 10, json!({ "stream": true }))).events();
    assert_eq!(streamed.error.unwrap()["code"], "generation_failed");
    assert!(server.join().is_err());
}

/// What the engine alone can know is refused before the reply begins.
#[test]
fn refusals_of_the_engine_name_the_field() {
    let server = server(model(Drafts::Right), options());
    let bias: serde_json::Map<String, Value> =
        (0..5).map(|id| (id.to_string(), json!(1))).collect();
    for stream in [false, true] {
        let body = prompt(1, 10, json!({ "logit_bias": bias, "stream": stream }));
        let (_, message) = server.completion(&body).refusal(400);
        assert!(message.starts_with("logit_bias: "), "{message}");
    }
}

/// Answers are right with a page less, so nobody would know before none are left.
#[test]
fn a_page_kept_beyond_its_sequence_ends_the_idle_server() {
    let options = options();
    let mut engine = Engine::new(model(Drafts::Right), options).unwrap();
    let request = Request { prompt: (3..43).collect(), max_tokens: Some(9), ..Request::default() };
    let id = engine.add(request).unwrap();
    engine.step().unwrap();
    let (pages, free) = (engine.pages(id).unwrap(), engine.free_pages().window);
    let leaked = pages.windows_before(pages.tokens()).pop().expect("its prompt has a window");
    while !engine.is_idle() {
        engine.step().unwrap();
    }
    assert!(engine.free_pages().window >= free);
    let engine = EngineHandle::spawn(Sequences::new(engine, vec![1])).unwrap();
    let server = TestServer::around(engine, ServerOptions::new("demo"));
    server.completion(&prompt(1, 40, json!({}))).ok();
    let error = server.join().unwrap_err();
    let Error::Internal { invariant } = &error else { panic!("{error}") };
    let named = format!("page {} has 0 owners", leaked.id());
    assert!(invariant.contains("window") && invariant.contains(&named), "{invariant}");
    assert_eq!(error.exit_code(), 70);
}
