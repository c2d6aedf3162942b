//! The shape of streams and counts (C081), and of the small endpoints.

use serde_json::{Value, json};

use crate::client::Streamed;
use crate::joined::Joined;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids};

fn server_saying(text: &str, then: Then) -> TestServer {
    let script = Script { cached_tokens: 2, ..Script::new(ids(text), then) };
    TestServer::of(Scripted::new(move |_| script.clone()))
}

/// Every chunk with a choice has a finish reason, which is null until the last of them.
#[track_caller]
fn check_finish(streamed: &Streamed, finish: &str) {
    let choices: Vec<&Value> =
        streamed.chunks.iter().filter_map(|chunk| chunk["choices"].get(0)).collect();
    let (last, before) = choices.split_last().unwrap();
    assert_eq!(last["finish_reason"], finish);
    for choice in before {
        assert_eq!(choice.get("finish_reason"), Some(&Value::Null));
    }
    let ids: Vec<&Value> = streamed.chunks.iter().map(|chunk| &chunk["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "one id for the whole stream");
}

#[test]
fn c081_usage_comes_last_and_only_when_wanted() {
    for (then, max_tokens, finish) in [(Then::Stop, 100, "stop"), (Then::Again, 9, "length")] {
        let server = server_saying("Call me Ishmael.", then);
        let limit = json!({ "max_tokens": max_tokens });
        let whole = Joined::of_chat(&server.chat(&chat(limit)).ok());
        assert_eq!(whole.finish, finish);

        let plain = json!({ "max_tokens": max_tokens, "stream": true });
        let streamed = server.chat(&chat(plain)).events();
        check_finish(&streamed, finish);
        assert!(streamed.done);
        assert!(streamed.chunks.iter().all(|chunk| chunk.get("usage").is_none()));
        assert_eq!(streamed.chunks[0]["choices"][0]["delta"]["role"], "assistant");
        assert!(streamed.chunks.iter().all(|c| c["object"] == "chat.completion.chunk"));

        let counted = json!({
            "max_tokens": max_tokens, "stream": true, "stream_options": { "include_usage": true },
        });
        let streamed = server.chat(&chat(counted)).events();
        check_finish(&streamed, finish);
        assert!(streamed.done);
        let (last, before) = streamed.chunks.split_last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &whole.usage));
        assert!(before.iter().all(|chunk| chunk["usage"].is_null()));
        streamed.joined().assert_same(&whole);
    }
}

/// Counts grow from chunk to chunk, and the last choice has as many as the whole.
#[test]
fn c081_usage_with_every_chunk() {
    let server = server_saying("Call me Ishmael.", Then::Stop);
    let options = json!({ "include_usage": true, "continuous_usage_stats": true });
    let more = json!({ "n": 2, "stream": true, "stream_options": options });
    for streamed in [server.chat(&chat(more.clone())), server.completion(&completion(more))] {
        let streamed = streamed.events();
        let usages: Vec<_> = streamed.chunks.iter().map(|chunk| &chunk["usage"]).collect();
        let tokens = |usage: &&Value| usage["completion_tokens"].as_u64().unwrap();
        let counts: Vec<_> = usages.iter().map(tokens).collect();
        assert!(counts.is_sorted() && counts[0] <= 1, "{counts:?}");
        assert!(counts.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{counts:?}");
        let (last, before) = usages.split_last().unwrap();
        assert_eq!(before.last(), Some(last));
        assert!(usages.iter().all(|usage| usage["prompt_tokens"] == last["prompt_tokens"]));
        assert!(last["prompt_tokens"].as_u64() > Some(0) && tokens(last) > 4);
        assert!(streamed.done);
    }
}

#[test]
fn c081_usage_adds_up() {
    let server = server_saying("Hm.</think>Call me", Then::Stop);
    let body = server.chat(&json!({ "messages": [{ "role": "user", "content": "Hi" }] })).ok();
    let prompt = server.seen.lock().unwrap().jobs[0].prompt.len();
    let generated = ids("Hm.</think>Call me").len();
    assert_eq!(
        body["usage"],
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
            "prompt_tokens_details": { "cached_tokens": 2 },
            "completion_tokens_details": {
                "reasoning_tokens": ids("Hm.").len(),
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": generated,
            },
        })
    );
    let mut scripted = Scripted::saying(ids("Call me"));
    scripted.limits.bounded_replay = true;
    let bounded = TestServer::of(scripted);
    let body_of = |path: &str, body: Value| bounded.post(path, &body).ok();
    let message = json!({ "role": "user", "content": "Hi" });
    for (path, body) in [
        ("/v1/chat/completions", json!({ "model": "demo", "messages": [message] })),
        ("/v1/responses", json!({ "model": "demo", "input": [message] })),
        ("/v1/messages", json!({ "model": "demo", "messages": [message], "max_tokens": 9 })),
    ] {
        assert_eq!(body_of(path, body)["usage"]["prefix_cache"], "bounded", "{path}");
    }
    let message = &body["choices"][0]["message"];
    assert_eq!(
        (&message["reasoning_content"], &message["content"]),
        (&json!("Hm."), &json!("Call me"))
    );
}

#[test]
fn c081_an_error_in_the_middle_is_no_success() {
    let server = server_saying("Call me", Then::Fail("its logits were no numbers"));
    for body in [chat(json!({ "stream": true })), completion(json!({ "stream": true }))] {
        let path = if body.get("messages").is_some() { "chat/completions" } else { "completions" };
        let streamed = server.post(&format!("/v1/{path}"), &body).events();
        let error = streamed.error.clone().expect("an error event");
        assert_eq!(error["message"], "its logits were no numbers");
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("server_error"), &json!("generation_failed"))
        );
        assert!(!streamed.done);
        assert_eq!(streamed.joined().text, "Call me");
    }
    let (_, message) = server.chat(&chat(json!({}))).refusal(500);
    assert_eq!(message, "its logits were no numbers");
    // Others are served.
    server.get("/health").ok();
}

/// Thinking is on by default; a limit inside it leaves the answer empty and says why.
#[test]
fn a_limit_inside_the_reasoning() {
    let server = server_saying("thinking and thinking", Then::Again);
    let body = json!({ "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 8 });
    let joined = Joined::of_chat(&server.chat(&body).ok());
    assert_eq!((joined.text.as_str(), &joined.finish), ("", &json!("length")));
    assert!(joined.reasoning.starts_with("thinking"));
    assert_eq!(joined.usage["completion_tokens"], 8);
}

#[test]
fn completions_are_bare_text() {
    let server = server_saying("Ishmael</think>.", Then::Stop);
    let body = server.completion(&completion(json!({ "max_tokens": null }))).ok();
    assert_eq!(body["object"], "text_completion");
    assert_eq!(body["choices"][0]["text"], "Ishmael</think>.", "control tokens are spelled");
    assert_eq!(server.seen.lock().unwrap().jobs[0].max_tokens, 16, "the protocol's default");
    let streamed = server.completion(&completion(json!({
        "stream": true, "stream_options": { "include_usage": true },
    })));
    let joined = streamed.events().joined();
    assert_eq!((joined.text.as_str(), &joined.usage), ("Ishmael</think>.", &body["usage"]));
    assert!(streamed.events().done);
}

#[test]
fn small_endpoints() {
    let server = server_saying("", Then::Stop);
    let models = server.get("/v1/models").ok();
    assert_eq!(models["object"], "list");
    assert_eq!(
        (&models["data"][0]["id"], &models["data"][0]["max_model_len"]),
        (&json!("demo"), &json!(4096))
    );
    assert_eq!(server.get("/v1/models/demo").ok(), models["data"][0]);
    server.get("/v1/models/org/other").refusal(404);
    assert_eq!(server.get("/health").ok()["status"], "ok");
    server.get("/v1/nothing").refusal(404);
    server.get("/v1/completions").refusal(405);
}
