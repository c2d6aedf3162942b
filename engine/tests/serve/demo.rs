//! The server over the demo checkpoint on the reference device.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tandem_engine::exec::{DraftSource, Engine, EngineOptions, Graphs, Replay, Runner};
use tandem_engine::serve::{EngineHandle, Sequences, ServerOptions};
use tandem_hal::{Device, Rule};
use tandem_reference::RefDevice;

use crate::joined::Joined;
use crate::model_support::{demo, demo_config};
use crate::server::TestServer;
use crate::support::{completion, ids, merge};

pub const PAGES: u64 = 64;

/// One server for all tests: loading takes a while.
pub static SERVER: LazyLock<TestServer> = LazyLock::new(|| {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 4,
        step_tokens: 96,
        chunk_tokens: 96,
        step_us: None,
        resume_points: 0,
        replay: Replay::Exact,
        pages: PAGES,
        context_tokens: 1024,
        draft_tokens: 5,
        least_survival: 0.0,
        drafts: DraftSource::Dspark,
        skip_upper_half: true,
        step_sizes: vec![1, 2, 4],
        pictures: 1,
        graphs: Graphs::Full,
        biases: 16,
        seed: 0,
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let mut runner = Runner::new(&device, resident, &options, Rule::Standard).unwrap();
    runner.capture(&options).unwrap();
    let engine = Engine::new(runner, options).unwrap();
    let sequences = Sequences::new(engine, vec![demo_config().eos_token_id]);
    TestServer::around(EngineHandle::spawn(sequences).unwrap(), ServerOptions::new("demo"))
});

fn body(text: &str, more: Value) -> Value {
    let mut body = completion(json!({ "prompt": text, "max_tokens": 10, "temperature": 0 }));
    merge(&mut body, more);
    body
}

/// The one choice and the usage.
#[track_caller]
fn said(body: &Value) -> (Value, Value) {
    let reply = SERVER.completion(body).ok();
    (reply["choices"][0].clone(), reply["usage"].clone())
}

#[track_caller]
fn text(more: Value) -> Value {
    said(&body("The state of the Union is", more)).0["text"].clone()
}

/// Alone, among others and streamed, a request has the same reply (C075, C076, C059).
#[test]
fn several_requests_batched_say_what_each_says_alone() {
    let requests = [
        body("Call me", json!({})),
        body("The white whale", json!({ "temperature": 0.8, "seed": 42 })),
        body("My fellow citizens,", json!({ "temperature": 1, "seed": 0, "top_p": 0.9 })),
        body(&"the sea ".repeat(60), json!({ "logprobs": 2 })),
        body("Congress", json!({ "presence_penalty": 1, "frequency_penalty": 0.5 })),
        body("It was", json!({ "top_k": 20, "min_p": 0.01, "seed": 5, "temperature": 1 })),
    ];
    let alone: Vec<_> = requests.iter().map(said).collect();
    for (_, usage) in &alone {
        assert!(usage["completion_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    }
    std::thread::scope(|scope| {
        for (request, alone) in requests.iter().zip(&alone) {
            scope.spawn(move || assert_eq!(said(request), *alone));
            scope.spawn(move || {
                let mut streamed = request.clone();
                let options = json!({ "include_usage": true });
                merge(&mut streamed, json!({ "stream": true, "stream_options": options }));
                let events = SERVER.completion(&streamed).events();
                assert!(events.done);
                let Joined { text, finish, usage, .. } = events.joined();
                let (choice, counts) = alone;
                assert_eq!(
                    (json!(text), &finish),
                    (choice["text"].clone(), &choice["finish_reason"])
                );
                assert_eq!(usage, *counts);
            });
        }
    });
    assert_ne!(
        said(&body("The white whale", json!({ "temperature": 0.8, "seed": 43 }))).0,
        alone[1].0,
        "another seed"
    );
}

#[test]
fn a_chat_streamed_and_whole() {
    let mut chat = json!({
        "messages": [
            { "role": "system", "content": "Speak of the sea." },
            { "role": "user", "content": "Who are you?" },
        ],
        "max_completion_tokens": 12, "temperature": 0, "logprobs": true, "top_logprobs": 1,
    });
    for thinking in ["enabled", "disabled"] {
        merge(&mut chat, json!({ "thinking": { "type": thinking }, "stream": false }));
        let whole = Joined::of_chat(&SERVER.chat(&chat).ok());
        assert_eq!(json!(whole.logprobs.len()), whole.usage["completion_tokens"]);
        merge(&mut chat, json!({ "stream": true, "stream_options": { "include_usage": true } }));
        SERVER.chat(&chat).events().joined().assert_same(&whole);
        chat.as_object_mut().unwrap().remove("stream_options");
    }
}

/// C077 at the sampler: one candidate is greedy however it comes about.
#[test]
fn c077_one_candidate_is_greedy() {
    let greedy = text(json!({}));
    for more in [
        json!({ "temperature": 1, "top_k": 1 }),
        json!({ "temperature": 1e-9 }),
        json!({ "temperature": 1, "min_p": 1 }),
        json!({ "temperature": 1, "top_p": 0 }),
        json!({ "top_k": 4096 }),
        json!({ "top_k": -1, "min_p": 0 }),
    ] {
        assert_eq!(text(more.clone()), greedy, "{more}");
    }
}

/// C074: log-probabilities are of the logits after penalties and bias and before temperature and
/// filters, with drafts and without.
#[test]
fn c074_what_the_log_probabilities_mean() {
    let first = |more: Value| {
        let mut body = body("The state of the Union is", more);
        merge(&mut body, json!({ "logprobs": 3, "max_tokens": 1 }));
        said(&body).0["logprobs"]["top_logprobs"][0].clone()
    };
    let raw = first(json!({}));
    for (_, value) in raw.as_object().unwrap() {
        assert!(value.as_f64().is_some_and(|value| value < 0.0 && value > -100.0));
    }
    for more in [json!({ "temperature": 2, "seed": 1 }), json!({ "temperature": 1, "top_p": 0.5 })]
    {
        assert_eq!(first(more), raw);
    }
    assert_ne!(first(json!({ "logit_bias": { (ids(" the")[0].to_string()): 20 } })), raw);
}

#[test]
fn logit_bias_bans_and_forces() {
    let whale = ids("whale");
    let forced =
        json!({ "logit_bias": { (whale[0].to_string()): 100 }, "logprobs": 0, "max_tokens": 2 });
    let tokens = said(&body("The", forced)).0["logprobs"]["tokens"].clone();
    assert_eq!(tokens[0], tokens[1]);
    let greedy = body("The", json!({ "logprobs": 0, "max_tokens": 1 }));
    let first = said(&greedy).0["logprobs"]["tokens"][0].as_str().unwrap().to_owned();
    let banned = json!({ "logit_bias": { (ids(&first)[0].to_string()): -100 } });
    let mut banned_body = greedy;
    merge(&mut banned_body, banned);
    assert_ne!(said(&banned_body).0["logprobs"]["tokens"][0], first);
}

/// C060 with real pages.
#[test]
fn hanging_up_lets_others_have_the_pages() {
    let long = body("Moby", json!({ "max_tokens": 900, "stream": true })).to_string();
    let mut connection = SERVER.connect();
    connection.send_request("POST", "/v1/completions", Some(long.as_bytes()));
    assert_eq!(connection.head().0, 200);
    assert!(connection.chunk().is_some());
    drop(connection);
    SERVER.wait_until_free(PAGES);
}
