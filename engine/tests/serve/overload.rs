//! Batching, and more requests than there are places.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Reply;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids, tokenizer};

/// Every reply repeats its own prompt.
fn echo(step_time: Duration) -> Scripted {
    let director = |job: &tandem_engine::serve::Job| Script::new(job.prompt.clone(), Then::Stop);
    Scripted { step_time, ..Scripted::new(director) }
}

#[test]
fn requests_run_side_by_side_and_keep_apart() {
    let server = TestServer::of(echo(Duration::from_millis(3)));
    std::thread::scope(|scope| {
        for number in 0..24 {
            let server = &server;
            scope.spawn(move || {
                let text = format!("the secret is {}", number * 7919);
                let mut prompt = vec![0];
                prompt.extend(tokenizer().encode(&text).unwrap());
                let stream = number % 2 == 0;
                let body = json!({ "prompt": text, "max_tokens": 1000, "stream": stream });
                let reply = server.completion(&body);
                let said = if stream {
                    reply.events().joined().text
                } else {
                    reply.ok()["choices"][0]["text"].as_str().unwrap().to_owned()
                };
                assert_eq!(said, format!("<｜begin▁of▁sentence｜>{text}"));
            });
        }
    });
    let widest = server.seen.lock().unwrap().widest_step;
    assert!((2..=8).contains(&widest), "{widest} side by side");
    server.wait_until_free(1024);
}

#[test]
fn overload_is_a_429_that_says_when() {
    let mut scripted = Scripted::new(|_| Script::new(ids("Call me"), Then::Again));
    scripted.step_time = Duration::from_millis(2);
    scripted.limits.max_sequences = 2;
    let server = TestServer::with(scripted, |options| options.max_queued_requests = 1);
    let body = chat(json!({ "max_tokens": 4000, "stream": true })).to_string();
    let mut open: Vec<_> = (0..3)
        .map(|_| {
            let mut connection = server.connect();
            connection.send_request("POST", "/v1/chat/completions", Some(body.as_bytes()));
            assert_eq!(connection.head().0, 200);
            connection
        })
        .collect();
    for stream in [false, true] {
        let reply = server.chat(&chat(json!({ "stream": stream })));
        reply.refusal(429);
        let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds));
    }
    // What is wrong anyway is said first, and health needs no place.
    server.chat(&chat(json!({ "n": 0 }))).refusal(400);
    assert_eq!(server.get("/health").ok()["requests_under_way"], 3);
    drop(open.pop());
    server.wait_until("a place is free", |server| {
        server.chat(&chat(json!({ "max_tokens": 2 }))).status == 200
    });
}

fn waiting_tokens(server: &TestServer) -> u64 {
    server.get("/health").ok()["prompt_tokens_waiting"].as_u64().unwrap()
}

#[test]
fn tokens_of_prompts_that_wait_are_bounded() {
    let mut scripted = Scripted::new(|_| Script::new(ids("Call me"), Then::Again));
    scripted.step_time = Duration::from_millis(2);
    scripted.limits.max_sequences = 1;
    let server = TestServer::with(scripted, |options| options.max_queued_tokens = 100);
    let of = |prompt: Value| completion(json!({ "prompt": prompt, "max_tokens": 3000 }));
    let open = |tokens: usize| {
        let mut body = of(json!(vec![5; tokens]));
        body["stream"] = true.into();
        let mut connection = server.connect();
        connection.send_request("POST", "/v1/completions", Some(body.to_string().as_bytes()));
        assert_eq!(connection.head().0, 200);
        connection
    };
    // More than may wait, but nothing else does; when it runs it waits no longer.
    let running = open(500);
    server.wait_until("it runs", |server| waiting_tokens(server) == 0);
    let waiting = open(60);
    assert_eq!(waiting_tokens(&server), 60);
    let refused = |reply: Reply| {
        let (_, message) = reply.refusal(429);
        assert!(message.contains("tokens of prompts"), "{message}");
        let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds));
    };
    refused(server.completion(&of(json!(vec![vec![5; 20], vec![6; 21]]))));
    // Its length alone tells: neither is its picture looked at, which is wrong, nor its text tokenised.
    let text = "whale ".repeat(1000);
    let picture = json!({ "type": "image_url", "image_url": { "url": "nowhere" } });
    let parts = json!([{ "type": "text", "text": text }, picture]);
    let wrong = chat(json!({ "messages": [{ "role": "user", "content": parts }] }));
    refused(server.chat(&wrong));
    // This one's length tells nothing yet: as many letters may be a few tokens.
    refused(server.completion(&of(json!("?!#$".repeat(25)))));
    assert_eq!(waiting_tokens(&server), 60, "what was refused holds nothing");
    let fits = open(40);
    assert_eq!(waiting_tokens(&server), 100);
    drop(waiting);
    server.wait_until("its client's end is known", |server| waiting_tokens(server) == 40);
    drop((fits, running));
    server.wait_until("all are over", |server| waiting_tokens(server) == 0);
    server.chat(&wrong).refusal(400);
    server.completion(&completion(json!({ "prompt": text, "max_tokens": 2 }))).ok();
}
