//! Hanging up frees everything (C060).

use std::time::Duration;

use serde_json::json;

use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids};

const PAGES: u64 = 1024;

/// Replies go on for ever, one token every two milliseconds, four side by side.
fn slow_server() -> TestServer {
    let said = ids("Call me Ishmael. Some years ago, never mind how long precisely");
    let mut scripted = Scripted::new(move |_| Script::new(said.clone(), Then::Again));
    scripted.step_time = Duration::from_millis(2);
    scripted.limits.max_sequences = 4;
    TestServer::of(scripted)
}

#[test]
fn c060_hanging_up_frees_everything() {
    let server = slow_server();
    let short = chat(json!({ "max_tokens": 5 }));
    let normal = server.chat(&short).ok()["choices"][0]["message"]["content"].clone();
    let mut open = Vec::new();
    for index in 0..50 {
        let stream = index % 2 == 0;
        let body = chat(json!({ "max_tokens": 1000, "stream": stream })).to_string();
        let mut connection = server.connect();
        connection.send_request("POST", "/v1/chat/completions", Some(body.as_bytes()));
        open.push(connection);
    }
    // Some run, most wait in the queue.
    server.wait_until("four run, others wait", |server| {
        let load = server.engine.load();
        load.running == 4 && load.waiting >= 40 && load.free_pages < PAGES
    });
    drop(open);
    server.wait_until_free(PAGES);
    server.wait_until("no place is held", |server| {
        server.get("/health").ok()["requests_under_way"] == 0
    });
    assert_eq!(server.chat(&short).ok()["choices"][0]["message"]["content"], normal);
}

#[test]
fn c060_after_some_tokens() {
    let server = slow_server();
    for (chunks, path) in [(2, "/v1/chat/completions"), (6, "/v1/completions")] {
        let body = if path.contains("chat") {
            chat(json!({ "max_tokens": 1000, "stream": true }))
        } else {
            completion(json!({ "max_tokens": 1000, "stream": true }))
        };
        let mut connection = server.connect();
        connection.send_request("POST", path, Some(body.to_string().as_bytes()));
        assert_eq!(connection.head().0, 200);
        for _ in 0..chunks {
            assert!(connection.chunk().is_some());
        }
        assert_eq!(server.engine.load().running, 1);
        drop(connection);
        server.wait_until_free(PAGES);
    }
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.cancelled.len(), 2);
}

/// A reader that takes nothing holds up nobody: the engine never waits for a client.
#[test]
fn a_slow_reader_holds_up_nobody() {
    let server = TestServer::of(Scripted::new(|_| Script::new(ids("Call me "), Then::Again)));
    let body = chat(json!({ "max_tokens": 4000, "stream": true })).to_string();
    let mut lazy = server.connect();
    lazy.send_request("POST", "/v1/chat/completions", Some(body.as_bytes()));
    let other = server.chat(&chat(json!({ "max_tokens": 50 }))).ok();
    assert_eq!(other["usage"]["completion_tokens"], 50);
    server.wait_until_free(PAGES);
    let streamed = lazy.reply().events();
    assert!(streamed.done);
    assert_eq!(streamed.joined().finish, "length");
}
