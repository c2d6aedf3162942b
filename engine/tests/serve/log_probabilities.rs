//! Log-probabilities (C073): one entry per token, however the engine commits them.

use serde_json::{Value, json};

use crate::joined::Joined;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids, tokenizer};

fn close(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-6
}

#[test]
fn c073_one_entry_per_token_in_falling_order() {
    let reply = ids("Call me Ishmael.");
    for tokens_per_step in [1, 6] {
        let server =
            TestServer::of(Scripted { tokens_per_step, ..Scripted::saying(reply.clone()) });
        let wanted = json!({ "logprobs": true, "top_logprobs": 3 });
        let whole = Joined::of_chat(&server.chat(&chat(wanted)).ok());
        let stream = json!({
            "logprobs": true, "top_logprobs": 3,
            "stream": true, "stream_options": { "include_usage": true },
        });
        server.chat(&chat(stream)).events().joined().assert_same(&whole);
        assert_eq!(whole.logprobs.len(), reply.len());
        for (entry, &id) in whole.logprobs.iter().zip(&reply) {
            let bytes = tokenizer().token_bytes(id).unwrap();
            assert_eq!(entry["bytes"], json!(bytes));
            assert!(close(&entry["logprob"], -0.407_606));
            let top = entry["top_logprobs"].as_array().unwrap();
            assert_eq!(top.len(), 3);
            assert_eq!(top[0]["token"], entry["token"], "the chosen token is listed");
            for (alternative, expected) in top.iter().zip([-0.407_606, -1.407_606, -2.407_606]) {
                assert!(close(&alternative["logprob"], expected));
            }
        }
    }
}

/// Of the logits that tokens are chosen by, unless those of the model are asked for.
#[test]
fn either_kind_is_asked_for_by_its_name() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let raw = |mode: Option<&str>| {
        let more = json!({ "logprobs": true, "logprobs_mode": mode });
        server.chat(&chat(more)).ok();
        let more = json!({ "logprobs": 1, "logprobs_mode": mode });
        server.completion(&completion(more)).ok();
        let more = json!({
            "input": "x", "include": ["message.output_text.logprobs"], "logprobs_mode": mode,
        });
        server.post("/v1/responses", &more).ok();
        let jobs = std::mem::take(&mut server.seen.lock().unwrap().jobs);
        jobs.iter().map(|job| job.sampling.raw_log_probs).collect::<Vec<_>>()
    };
    assert_eq!(raw(None), [false; 3]);
    assert_eq!(raw(Some("processed")), [false; 3]);
    assert_eq!(raw(Some("raw")), [true; 3]);
    let more = json!({ "input": "x", "logprobs_mode": "raw" });
    let (param, _) = server.post("/v1/responses", &more).refusal(400);
    assert_eq!(param.as_deref(), Some("logprobs_mode"));
}

#[test]
fn none_unless_asked_for() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let body = server.chat(&chat(json!({}))).ok();
    assert!(body["choices"][0]["logprobs"].is_null());
    let body = server.chat(&chat(json!({ "logprobs": true }))).ok();
    let entries = body["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
    assert!(entries.iter().all(|entry| entry["top_logprobs"] == json!([])));
    for more in [json!({ "top_logprobs": 2 }), json!({ "logprobs": true, "top_logprobs": 21 })] {
        let (param, _) = server.chat(&chat(more)).refusal(400);
        assert_eq!(param.as_deref(), Some("top_logprobs"));
    }
}

/// Entries of held-back text come with the token, and the last chunk carries none.
#[test]
fn the_last_chunk_only_says_why() {
    let said = ids("Call me");
    let server = TestServer::of(Scripted::new(move |_| Script::new(said.clone(), Then::Again)));
    let body = chat(json!({ "logprobs": true, "stream": true, "max_tokens": 3 }));
    let chunks = server.chat(&body).events().chunks;
    let last = &chunks.last().unwrap()["choices"][0];
    assert_eq!((&last["finish_reason"], &last["delta"]), (&json!("length"), &json!({})));
    assert!(last["logprobs"].is_null());
}

#[test]
fn completions_have_their_own_shape() {
    let reply = ids("Call me Ishmael.");
    let server = TestServer::of(Scripted::saying(reply.clone()));
    let whole = server.completion(&completion(json!({ "logprobs": 2 }))).ok();
    let logprobs = &whole["choices"][0]["logprobs"];
    for field in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(logprobs[field].as_array().unwrap().len(), reply.len(), "{field}");
    }
    assert_eq!(
        logprobs["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_str().unwrap())
            .collect::<String>(),
        "Call me Ishmael."
    );
    let stream = completion(json!({ "logprobs": 2, "stream": true }));
    let mut offsets = Vec::new();
    for chunk in server.completion(&stream).events().chunks {
        offsets.extend(
            chunk["choices"][0]["logprobs"]["text_offset"].as_array().cloned().unwrap_or_default(),
        );
    }
    assert_eq!(&json!(offsets), &logprobs["text_offset"]);
}
