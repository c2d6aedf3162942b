//! Many clients: the same text as each request alone, nothing refused that there is room for, no
//! page lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tandem_engine::exec::{Engine, EngineOptions, Graphs, Runner};
use tandem_engine::serve::{EngineHandle, Sequences, ServerOptions};
use tandem_hal::{Device, Rule};
use tandem_reference::RefDevice;

use crate::demo::SERVER;
use crate::engine_support::{self, Drafts, FakeModel};
use crate::model_support::{demo, demo_config};
use crate::server::TestServer;
use crate::support::{completion, merge};

const PAGES: u64 = 96;

/// The demo with room for less than all that is asked of it, and a prefix cache.
fn demo_server() -> TestServer {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 24,
        step_tokens: 160,
        chunk_tokens: 160,
        pages: PAGES,
        context_tokens: 1024,
        draft_tokens: 0,
        resume_points: 24,
        step_sizes: vec![1, 8, 24],
        graphs: Graphs::Full,
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), false, &options);
    let mut runner = Runner::new(&device, resident, &options, Rule::Standard).unwrap();
    runner.capture(&options).unwrap();
    let engine = Engine::new(runner, options).unwrap();
    let sequences = Sequences::new(engine, vec![demo_config().eos_token_id]);
    TestServer::around(EngineHandle::spawn(sequences).unwrap(), ServerOptions::new("demo"))
}

/// One of forty requests; many begin alike.
fn body(number: u64) -> Value {
    let shared = ["", "It was the best of times, it was the worst of times. ", "Call me Ishmael. "];
    let shared = shared[(number % 3) as usize].repeat(1 + (number % 5) as usize);
    let prompt = format!("{shared}Chapter {number}");
    completion(json!({ "prompt": prompt, "max_tokens": 1 + number % 16, "temperature": 0 }))
}

/// Runs `count` requests from `clients` threads; `each` gets the number of each.
fn run(clients: u64, count: u64, each: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    each(number);
                }
            });
        }
    });
}

#[test]
fn c059_64_clients_get_what_each_gets_alone() {
    // Another server, without prefix cache, one request at a time.
    let alone: Vec<_> =
        (0..40).map(|n| SERVER.completion(&body(n)).ok()["choices"].clone()).collect();
    let server = demo_server();
    let start = Instant::now();
    let cached = AtomicU64::new(0);
    run(64, 200, |number| {
        let reply = server.completion(&body(number % 40)).ok();
        assert_eq!(reply["choices"], alone[(number % 40) as usize], "request {number}");
        let tokens = &reply["usage"]["prompt_tokens_details"]["cached_tokens"];
        cached.fetch_add(tokens.as_u64().unwrap(), Ordering::Relaxed);
    });
    println!("200 requests of 64 clients in {:.1} s", start.elapsed().as_secs_f64());
    println!("{} tokens of prompts were cached", cached.load(Ordering::Relaxed));
    assert!(cached.load(Ordering::Relaxed) > 0);
    server.wait_until_free(PAGES);
    // Long enough idle for the accounts to be checked.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.completion(&body(1)).ok();
}

#[test]
fn ten_thousand_requests_come_and_go() {
    let mut model = FakeModel::new(Drafts::Mixed);
    (model.geometry.vocab, model.geometry.context_tokens) = (2000, 4096);
    model.thorough = false;
    let options = EngineOptions {
        sequences: 32,
        step_tokens: 512,
        pages: 60,
        resume_points: 16,
        ..engine_support::options()
    };
    let sequences = Sequences::new(Engine::new(model, options).unwrap(), vec![]);
    let handle = EngineHandle::spawn(sequences).unwrap();
    let server = TestServer::around(handle, ServerOptions::new("demo"));
    let body = |number: u64| {
        // A prefix of one of four prompts, and something of its own.
        let (family, shared) = (number % 4, 16 * (number % 11));
        let ids: Vec<u64> = (0..shared).map(|at| 3 + family * 31 + at % 500).collect();
        let own = (0..1 + number % 7).map(|at| 700 + number * 13 + at);
        let ids: Vec<u64> = ids.into_iter().chain(own).collect();
        completion(json!({ "prompt": ids, "max_tokens": 1 + number % 5, "temperature": 0 }))
    };
    let alone: Vec<_> =
        (0..60).map(|n| server.completion(&body(n)).ok()["choices"].clone()).collect();
    let start = Instant::now();
    run(32, 10_000, |number| {
        let mut body = body(number % 60);
        if number % 29 == 3 {
            // Hangs up after the head.
            merge(&mut body, json!({ "stream": true, "max_tokens": 500 }));
            let mut connection = server.connect();
            let body = body.to_string();
            connection.send_request("POST", "/v1/completions", Some(body.as_bytes()));
            assert_eq!(connection.head().0, 200);
            return;
        }
        let choices = server.completion(&body).ok()["choices"].clone();
        assert_eq!(choices, alone[(number % 60) as usize], "request {number}");
    });
    println!("10,000 requests in {:.1} s", start.elapsed().as_secs_f64());
    server.wait_until_free(60);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.completion(&body(1)).ok();
}
