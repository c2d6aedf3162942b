//! Token limits (C078) and requests that can never fit (C061).

use serde_json::{Value, json};

use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::completion;

/// A server whose context holds this many tokens; every reply goes on for ever.
fn server(context_tokens: u64) -> TestServer {
    let mut scripted = Scripted::new(|_| Script::new(vec![5], Then::Again));
    scripted.limits.context_tokens = context_tokens;
    TestServer::of(scripted)
}

fn prompt(tokens: usize, max_tokens: &Value) -> Value {
    completion(json!({ "prompt": vec![5; tokens], "max_tokens": max_tokens }))
}

/// Documented choice: a limit beyond the room is lowered to the room, a header says so, and the
/// reply ends with finish reason length.
#[test]
fn c078_huge_and_odd_max_tokens() {
    let server = server(256);
    let reply = server.completion(&prompt(10, &json!(246)));
    assert_eq!(reply.header("tandem-max-tokens"), None);
    assert_eq!(reply.ok()["usage"]["completion_tokens"], 246);
    for huge in [
        json!(247),
        json!(100_000_000),
        json!(4_294_967_296_u64),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e30),
    ] {
        for stream in [false, true] {
            let mut body = prompt(10, &huge);
            body["stream"] = json!(stream);
            let reply = server.completion(&body);
            assert_eq!(reply.status, 200);
            assert_eq!(reply.header("tandem-max-tokens"), Some("246"));
            if !stream {
                let body = reply.ok();
                assert_eq!(body["usage"]["completion_tokens"], 246);
                assert_eq!(body["choices"][0]["finish_reason"], "length");
            }
        }
    }
    for odd in [json!(0), json!(-1), json!(1.5), json!("5"), json!(true), json!(-1e30)] {
        let (param, _) = server.completion(&prompt(10, &odd)).refusal(400);
        assert_eq!(param.as_deref(), Some("max_tokens"));
    }
    let body = server.completion(&prompt(10, &Value::Null)).ok();
    assert_eq!(body["usage"]["completion_tokens"], 16);
    let (param, message) = server.completion(&prompt(300, &Value::Null)).refusal(400);
    assert_eq!(param.as_deref(), Some("prompt"));
    assert!(message.contains("300") && message.contains("256") && !message.contains('-'));
    assert!(server.completion(&prompt(256, &json!(1))).status == 400);
    for prompts in [json!([[5], vec![5; 300]]), json!(["Hi", "whale ".repeat(300)])] {
        let body = completion(json!({ "prompt": prompts }));
        let (param, message) = server.completion(&body).refusal(400);
        assert_eq!(param.as_deref(), Some("prompt[1]"), "{message}");
    }
    assert_eq!(server.completion(&prompt(255, &json!(9))).ok()["usage"]["completion_tokens"], 1);
}

#[test]
fn c078_a_chat_that_asks_for_nothing_has_the_rest_of_the_context() {
    let server = server(256);
    let body = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    let reply = server.chat(&body).ok();
    assert_eq!(reply["usage"]["total_tokens"], 256);
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    let long = json!({ "messages": [{ "role": "user", "content": "whale ".repeat(400) }] });
    assert_eq!(server.chat(&long).refusal(400).0.as_deref(), Some("messages"));
}

/// The context of a server is what its caches hold when that is less than the model's: what can
/// never fit is refused at once, what runs into the end is stopped there.
#[test]
fn c061_a_request_that_can_never_fit() {
    let server = server(64);
    let (_, message) = server.completion(&prompt(100, &json!(10))).refusal(400);
    assert!(message.contains("100") && message.contains("64"), "{message}");
    assert_eq!(server.completion(&prompt(10, &json!(5))).ok()["usage"]["completion_tokens"], 5);
    let body = server.completion(&prompt(60, &json!(100))).ok();
    assert_eq!(body["usage"]["completion_tokens"], 4);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
}

#[test]
fn a_refusal_of_the_engine_is_the_clients_mistake() {
    let server = server(64);
    for stream in [false, true] {
        let body = completion(json!({ "prompt": [7, 8], "stream": stream }));
        let (_, message) = server.completion(&body).refusal(400);
        assert_eq!(message, "prompt: it begins with 7; begin it otherwise");
    }
    assert_eq!(server.get("/health").ok()["requests_under_way"], 0);
}
