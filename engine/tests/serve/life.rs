//! Shutdown, and engines that fail.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tandem_engine::Error;

use crate::client::Connection;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, ids};

/// A server whose replies take a while, and one stream that has begun.
fn begun(max_tokens: u64, drain_timeout: Duration) -> (TestServer, Connection) {
    let mut scripted = Scripted::new(|_| Script::new(ids("Call me "), Then::Again));
    scripted.step_time = Duration::from_millis(5);
    let server = TestServer::with(scripted, |options| options.drain_timeout = drain_timeout);
    let body = chat(json!({ "max_tokens": max_tokens, "stream": true })).to_string();
    let mut connection = server.connect();
    connection.send_request("POST", "/v1/chat/completions", Some(body.as_bytes()));
    server.wait_until("the stream runs", |server| server.engine.load().running == 1);
    (server, connection)
}

#[test]
fn a_stop_lets_replies_end_and_takes_no_more() {
    let (mut server, mut connection) = begun(60, Duration::from_secs(20));
    server.ask_to_stop();
    server.wait_until("new work is refused", |server| server.get("/ready").status == 503);
    let health = server.get("/health").ok();
    assert_eq!((&health["running"], &health["requests_under_way"]), (&json!(1), &json!(1)));
    let (_, message) = server.chat(&chat(json!({}))).refusal(503);
    assert!(message.contains("shutting down"), "{message}");
    let streamed = connection.reply().events();
    assert!(streamed.done);
    assert_eq!(streamed.joined().finish, "length");
    server.stop().unwrap();
}

#[test]
fn what_does_not_end_in_time_fails_with_a_reason() {
    let (server, mut connection) = begun(4000, Duration::from_millis(100));
    let start = Instant::now();
    server.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    let streamed = connection.reply().events();
    assert_eq!(streamed.error.unwrap()["code"], "shutting_down");
    assert!(!streamed.done);
}

#[test]
fn an_idle_server_stops_at_once() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    // A connection that is kept open and says nothing.
    let mut idle = server.connect();
    idle.send_request("GET", "/health", None);
    idle.reply().ok();
    let start = Instant::now();
    server.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// A request whose body is not all there when the server is asked to stop is told so.
#[test]
fn half_a_body_is_refused_when_the_server_stops() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let mut half = server.connect();
    let kind = "content-type: application/json\r\ncontent-length: 10\r\n";
    half.send(
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\n{kind}\r\n{{").as_bytes(),
    );
    // It was read once another request has been answered.
    server.chat(&chat(json!({}))).ok();
    let start = Instant::now();
    server.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let (_, message) = half.reply().refusal(503);
    assert!(message.contains("shutting down"), "{message}");
}

/// A name that is no text is a name of nothing.
#[test]
fn paths_that_are_no_text_are_not_there() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    for path in ["/v1/models/%ff", "/page/%ff"] {
        let (_, message) = server.get(path).refusal(404);
        assert!(message.contains(path), "{message}");
    }
}

/// One request that fails is its own affair.
#[test]
fn one_failed_request_leaves_the_others() {
    let scripted = Scripted::new(|job| {
        let then = if job.max_tokens == 99 { Then::Fail("no numbers") } else { Then::Stop };
        Script::new(ids("Call me Ishmael."), then)
    });
    let server = TestServer::of(Scripted { step_time: Duration::from_millis(3), ..scripted });
    std::thread::scope(|scope| {
        let good = scope.spawn(|| server.chat(&chat(json!({}))).ok());
        server.chat(&chat(json!({ "max_tokens": 99 }))).refusal(500);
        let good: Value = good.join().unwrap();
        assert_eq!(good["choices"][0]["message"]["content"], "Call me Ishmael.");
    });
}

/// When the engine is gone, requests fail with a clear code and the server ends with an error.
#[test]
fn an_engine_that_fails_ends_the_server() {
    for (then, code) in [(Then::Break, "generation_failed"), (Then::Panic, "engine_stopped")] {
        let said = then.clone();
        let server =
            TestServer::of(Scripted::new(move |_| Script::new(ids("Call me"), said.clone())));
        let streamed = server.chat(&chat(json!({ "stream": true }))).events();
        assert_eq!(streamed.error.unwrap()["code"], code);
        assert!(!streamed.done);
        let error = server.join().unwrap_err();
        assert!(matches!(error, Error::Internal { .. }), "{error}");
        assert_eq!(error.exit_code(), 70);
    }
}
