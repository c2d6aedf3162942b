//! Fields: each works, or is a 400 that names it (C077, C080).

use serde_json::{Value, json};
use tandem_engine::serve::Job;

use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, completion, ids, tokenizer};

fn server() -> TestServer {
    TestServer::of(Scripted::saying(ids("Call me Ishmael. Some years ago")))
}

/// The job that a request became.
#[track_caller]
fn job(server: &TestServer, more: Value) -> Job {
    server.chat(&chat(more)).ok();
    server.seen.lock().unwrap().jobs.last().unwrap().clone()
}

#[track_caller]
fn refused(server: &TestServer, more: Value) -> (String, String) {
    let shown = more.to_string();
    let (param, message) = server.chat(&chat(more)).refusal(400);
    (param.unwrap_or_else(|| panic!("{shown}: {message}")), message)
}

#[test]
fn a_request_may_do_without_drafts() {
    let server = server();
    assert!(job(&server, json!({})).drafts);
    assert!(!job(&server, json!({ "drafts": false })).drafts);
    server.completion(&completion(json!({ "drafts": false }))).ok();
    assert!(!server.seen.lock().unwrap().jobs.last().unwrap().drafts);
    assert_eq!(refused(&server, json!({ "drafts": 3 })).0, "drafts");
}

#[test]
fn c077_sampling_limits() {
    let server = server();
    for (more, expected) in [
        (json!({ "top_k": 2049 }), 2049),
        (json!({ "top_k": 2048 }), 2048),
        (json!({ "top_k": 2047 }), 2047),
        (json!({ "top_k": 0 }), 0),
        (json!({ "top_k": -1 }), -1),
        (json!({ "top_k": 1 }), 1),
        (json!({ "top_k": null }), 0),
        (json!({ "top_k": 1e30 }), i64::MAX),
    ] {
        assert_eq!(job(&server, more.clone()).sampling.top_k, expected, "{more}");
    }
    for temperature in [0.0, 1e-9, 2.0] {
        let sampling = job(&server, json!({ "temperature": temperature })).sampling;
        assert_eq!(f64::from(sampling.temperature), f64::from(temperature as f32));
    }
    for min_p in [0, 1] {
        assert_eq!(job(&server, json!({ "min_p": min_p })).sampling.min_p, min_p as f32);
    }
    // No share at all still keeps the most likely token.
    assert!(job(&server, json!({ "top_p": 0 })).sampling.top_p > 0.0);
    for (name, value) in [
        ("top_k", json!(-2)),
        ("top_k", json!(1.5)),
        ("temperature", json!(-1)),
        ("temperature", json!("NaN")),
        ("temperature", json!(2.1)),
        ("min_p", json!(2)),
        ("min_p", json!(-1)),
        ("min_p", json!("NaN")),
        ("top_p", json!(1.1)),
        ("presence_penalty", json!(2.5)),
        ("frequency_penalty", json!(true)),
        ("repetition_penalty", json!(0)),
        ("seed", json!(-1)),
        ("seed", json!("7")),
        ("seed", json!(1.8446744073709552e19)),
        ("seed", json!(1e30)),
    ] {
        let mut more = json!({});
        more[name] = value;
        assert_eq!(refused(&server, more).0, name);
    }
    // A number beyond the range of floats is not JSON that anyone can read.
    let body = br#"{"messages":[{"role":"user","content":"Hi"}],"temperature":1e999}"#;
    server.connect().request("POST", "/v1/chat/completions", Some(body)).refusal(400);
}

/// Seeds (C075): every 64-bit number is one, 0 too; without one the engine takes a fresh one.
#[test]
fn c075_seeds() {
    let server = server();
    for seed in [0, 42, 1_u64 << 63, u64::MAX] {
        assert_eq!(job(&server, json!({ "seed": seed })).sampling.seed, Some(seed));
    }
    for more in [json!({}), json!({ "seed": null })] {
        assert_eq!(job(&server, more).sampling.seed, None);
    }
}

/// Fields that a client leaves open are the hosted model's; those that it sends are its own, while
/// thinking too.
#[test]
fn sampling_fields_arrive() {
    let server = server();
    let open = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    server.chat(&open).ok();
    let sampling = server.seen.lock().unwrap().jobs[0].sampling.clone();
    assert_eq!((sampling.temperature, sampling.top_p, sampling.min_p), (1.0, 1.0, 0.0));
    let sampling = job(
        &server,
        json!({
            "thinking": { "type": "enabled" }, "temperature": 0.5, "top_p": 0.25, "min_p": 0.125,
            "presence_penalty": 1, "frequency_penalty": -0.5, "repetition_penalty": 1.5,
            "logit_bias": { "5": -100, "7": 2.5 },
        }),
    )
    .sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.min_p), (0.5, 0.25, 0.125));
    assert_eq!((sampling.presence_penalty, sampling.frequency_penalty), (1.0, -0.5));
    assert_eq!(sampling.repetition_penalty, 1.5);
    assert_eq!(sampling.logit_bias, [(5, -100.0), (7, 2.5)]);
}

#[test]
fn c080_token_limits_under_both_names() {
    let server = server();
    for more in [
        json!({ "max_completion_tokens": 5 }),
        json!({ "max_tokens": 5 }),
        json!({ "max_tokens": 5, "max_completion_tokens": 5 }),
    ] {
        let body = server.chat(&chat(more)).ok();
        assert_eq!(body["usage"]["completion_tokens"], 5);
        assert_eq!(body["choices"][0]["finish_reason"], "length");
    }
    let both = json!({ "max_tokens": 5, "max_completion_tokens": 6 });
    assert_eq!(refused(&server, both).0, "max_completion_tokens");
}

#[test]
fn c080_fields_that_change_nothing_are_taken() {
    let server = server();
    let jobs = [
        json!({}),
        json!({ "user": "me", "safety_identifier": "x", "prompt_cache_key": "k" }),
        json!({ "metadata": { "a": "b" }, "store": false, "n": 1 }),
        json!({ "response_format": { "type": "text" }, "parallel_tool_calls": true }),
        json!({ "n": null, "stop": null, "tools": null, "no_such_field": null }),
        json!({ "tool_choice": "none" }),
        json!({ "model": "demo", "stream": false, "logit_bias": {} }),
    ]
    .map(|mut more| {
        more["seed"] = json!(1);
        job(&server, more)
    });
    assert!(jobs.iter().all(|job| *job == jobs[0]));
}

#[test]
fn c080_other_fields_are_named() {
    let server = server();
    for (field, more) in [
        ("n", json!({ "n": 129 })),
        ("n", json!({ "n": 0 })),
        ("response_format.type", json!({ "response_format": {} })),
        ("no_such_field", json!({ "no_such_field": 1 })),
        ("stream_options.extra", json!({ "stream": true, "stream_options": { "extra": 1 } })),
        ("stream_options", json!({ "stream_options": { "include_usage": true } })),
        (
            "stream_options.continuous_usage_stats",
            json!({ "stream": true, "stream_options": { "continuous_usage_stats": true } }),
        ),
        ("logprobs_mode", json!({ "logprobs_mode": "raw" })),
        ("logprobs_mode", json!({ "logprobs": true, "logprobs_mode": "raw_logits" })),
        ("functions", json!({ "functions": [] })),
        ("stop_token_ids", json!({ "stop_token_ids": 1 })),
        ("stop_token_ids", json!({ "stop_token_ids": vec![1; 129] })),
        ("stop_token_ids[1]", json!({ "stop_token_ids": [1, 2048] })),
        ("stop_token_ids[0]", json!({ "stop_token_ids": ["1"] })),
        ("store", json!({ "store": true })),
        ("tool_choice", json!({ "tool_choice": "sometimes" })),
        ("tool_choice", json!({ "tool_choice": "required" })),
        ("tool_choice", json!({ "tool_choice": { "function": { "name": "f" } } })),
        ("tools[0].function.name", json!({ "tools": [{ "function": {} }] })),
        ("tools[0].type", json!({ "tools": [{ "type": "custom" }] })),
        (
            "tools[1].function.name",
            json!({ "tools": [{ "function": { "name": "w" } }, { "function": { "name": "w" } }] }),
        ),
        (
            "tools[0].function.parameters",
            json!({ "tools": [{ "function": { "name": "f", "parameters": 1 } }] }),
        ),
        ("stop", json!({ "stop": "" })),
        ("stop", json!({ "stop": [1] })),
        ("stop", json!({ "stop": vec!["x"; 17] })),
        ("logit_bias.x", json!({ "logit_bias": { "x": 1 } })),
        ("logit_bias.2048", json!({ "logit_bias": { "2048": 1 } })),
        ("logit_bias.05", json!({ "logit_bias": { "05": 1 } })),
        ("logit_bias.+5", json!({ "logit_bias": { "+5": 1 } })),
        ("logit_bias.-0", json!({ "logit_bias": { "-0": 1 } })),
        ("logit_bias. 5", json!({ "logit_bias": { " 5": 1 } })),
        ("logit_bias.5", json!({ "logit_bias": { "5": 101 } })),
        ("stream", json!({ "stream": "yes" })),
        ("messages", json!({ "messages": null })),
        ("messages", json!({ "messages": [] })),
        ("messages", json!({ "messages": "Hi" })),
    ] {
        let (param, message) = refused(&server, more);
        assert_eq!(param, field, "{message}");
        assert!(message.contains(field), "{message}");
    }
    assert!(server.seen.lock().unwrap().jobs.is_empty(), "nothing of it reached the engine");
}

#[test]
fn thinking_in_three_spellings() {
    let server = server();
    let prompt = |more: Value| {
        let mut body = chat(more);
        if body["thinking"] == json!("absent") {
            body.as_object_mut().unwrap().remove("thinking");
        }
        server.chat(&body).ok();
        let ids = server.seen.lock().unwrap().jobs.last().unwrap().prompt.clone();
        String::from_utf8(tokenizer().decode(&ids).unwrap()).unwrap()
    };
    let default = prompt(json!({ "thinking": "absent" }));
    assert!(default.contains("Reasoning Effort: 75 ") && default.ends_with("<think>"));
    let off = prompt(json!({}));
    assert!(off.ends_with("</think>") && !off.contains("Effort"));
    for more in [
        json!({ "thinking": "absent", "reasoning_effort": "none" }),
        json!({ "thinking": "absent", "chat_template_kwargs": { "thinking": false } }),
        json!({ "thinking": "absent", "chat_template_kwargs": { "enable_thinking": false } }),
        json!({ "reasoning_effort": "none" }),
    ] {
        assert_eq!(prompt(more.clone()), off, "{more}");
    }
    for (effort, number) in
        [(json!("low"), 50), (json!("max"), 100), (json!(7), 7), (json!("medium"), 75)]
    {
        let text = prompt(json!({ "thinking": "absent", "reasoning_effort": effort }));
        assert!(text.contains(&format!("Reasoning Effort: {number} ")), "{text}");
    }
    let adaptive = json!({ "thinking": { "type": "adaptive", "budget_tokens": 1000 } });
    assert_eq!(prompt(adaptive), default);
}

#[test]
fn contradictions_about_thinking_are_named() {
    let server = server();
    for (field, more) in [
        ("reasoning_effort", json!({ "reasoning_effort": "high" })),
        (
            "reasoning_effort",
            json!({ "thinking": { "type": "enabled" }, "reasoning_effort": "none" }),
        ),
        ("chat_template_kwargs.thinking", json!({ "chat_template_kwargs": { "thinking": true } })),
        ("reasoning_effort", json!({ "thinking": null, "reasoning_effort": "hard" })),
        ("reasoning_effort", json!({ "thinking": null, "reasoning_effort": 0 })),
        ("reasoning_effort", json!({ "thinking": null, "reasoning_effort": 1.5 })),
        ("thinking.type", json!({ "thinking": { "type": "sometimes" } })),
        ("thinking.more", json!({ "thinking": { "type": "enabled", "more": 1 } })),
        ("chat_template_kwargs.other", json!({ "chat_template_kwargs": { "other": 1 } })),
        (
            "tool_choice",
            json!({
                "thinking": null, "tool_choice": "required",
                "tools": [{ "function": { "name": "f" } }],
            }),
        ),
    ] {
        assert_eq!(refused(&server, more).0, field);
    }
}

#[test]
fn fields_of_completions() {
    let server = server();
    let prompt = |more: Value| {
        server.completion(&completion(more)).ok();
        server.seen.lock().unwrap().jobs.last().unwrap().prompt.clone()
    };
    let mut text = vec![0];
    text.extend(ids("Call me"));
    assert_eq!(prompt(json!({})), text);
    assert_eq!(prompt(json!({ "prompt": ["Call me"] })), text);
    assert_eq!(prompt(json!({ "prompt": [5, 6] })), [5, 6]);
    assert_eq!(prompt(json!({ "prompt": [[5, 6]] })), [5, 6]);
    // What a text spells stays text.
    assert!(
        !prompt(json!({ "prompt": "<think>" }))
            .contains(&tokenizer().added_token("<think>").unwrap())
    );
    for (field, more) in [
        ("prompt", json!({ "prompt": null })),
        ("prompt", json!({ "prompt": vec!["a"; 129] })),
        ("prompt", json!({ "prompt": vec!["a"; 65], "n": 2 })),
        ("prompt[1]", json!({ "prompt": ["a", 5] })),
        ("prompt[1]", json!({ "prompt": ["a", []] })),
        ("prompt[1][0]", json!({ "prompt": [[5], [2048]] })),
        ("prompt", json!({ "prompt": [] })),
        ("prompt", json!({ "prompt": 5 })),
        ("prompt[1]", json!({ "prompt": [5, 2048] })),
        ("prompt[0]", json!({ "prompt": [-1] })),
        ("echo", json!({ "echo": true, "logprobs": 0 })),
        ("response_format", json!({ "response_format": { "type": "text" } })),
        ("best_of", json!({ "best_of": 2 })),
        ("suffix", json!({ "suffix": "x" })),
        ("logprobs", json!({ "logprobs": 21 })),
        ("logprobs_mode", json!({ "logprobs_mode": "raw" })),
        ("tools", json!({ "tools": [] })),
        ("no_such_field", json!({ "no_such_field": {} })),
    ] {
        let (param, message) = server.completion(&completion(more)).refusal(400);
        assert_eq!(param.as_deref(), Some(field), "{message}");
    }
}

#[test]
fn an_error_does_not_send_back_all_that_it_is_about() {
    let server = server();
    let long = "é\n".repeat(1 << 18);
    let with_key = |value: Value| Value::Object([(long.clone(), value)].into_iter().collect());
    let twice = format!(r#"{{"{0}": 1, "{0}": 2}}"#, "x".repeat(1 << 19));
    for reply in [
        server.chat(&chat(json!({ "logit_bias": with_key(json!(1)) }))),
        server.chat(&chat(json!({ "logit_bias": { "5": long } }))),
        server.chat(&chat(json!({ "model": long }))),
        server.chat(&chat(json!({ "reasoning_effort": long }))),
        server.chat(&chat(json!({ "thinking": { "type": long } }))),
        server.chat(&chat(json!({ "tool_choice": long }))),
        server.chat(&chat(json!({ "response_format": { "type": long } }))),
        server.chat(&chat(json!({ "messages": [{ "role": long }] }))),
        server.chat(&chat(json!({ "stream_options": with_key(json!({})), "stream": true }))),
        server.completion(&completion(with_key(json!({})))),
        server.connect().request("POST", "/v1/completions", Some(twice.as_bytes())),
    ] {
        let (_, message) = reply.refusal(reply.status);
        assert!((400..500).contains(&reply.status), "{} {message}", reply.status);
        assert!(reply.body.len() < 4096, "{} bytes: {message}", reply.body.len());
    }
    let (param, message) = server.chat(&chat(json!({ "model": long }))).refusal(404);
    assert_eq!(param.as_deref(), Some("model"));
    assert!(message.starts_with("model \"é\\n") && message.contains('…'), "{message}");
    assert!(message.ends_with("\\n\" is not served here; use \"demo\""), "{message}");
}

#[test]
fn another_model_is_not_found() {
    let server = server();
    let (param, message) = server.chat(&chat(json!({ "model": "other" }))).refusal(404);
    assert_eq!(param.as_deref(), Some("model"));
    assert!(message.contains("demo"), "{message}");
}

/// The documentation's list of fields that are known and refused.
#[test]
fn what_is_documented_as_refused_is() {
    let page = include_str!("../../../docs/SERVER.md");
    let (_, list) = page.split_once("Known and refused").expect("a list");
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let user = json!([{ "role": "user", "content": "Hi" }]);
    let mut refused = 0;
    for line in list.lines().skip_while(|line| !line.starts_with('|')).skip(2) {
        let Some((place, fields)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | "))
        else {
            break;
        };
        let chat = ("/v1/chat/completions", json!({ "messages": user }));
        let completion = ("/v1/completions", json!({ "prompt": "Hi" }));
        let paths = match place {
            "OpenAI's chat and completions" => vec![chat, completion],
            "chat" => vec![chat],
            "completions" => vec![completion],
            "responses" => vec![("/v1/responses", json!({ "input": "Hi" }))],
            "messages" => vec![(
                "/v1/messages",
                json!({ "model": "demo", "messages": user, "max_tokens": 5 }),
            )],
            _ => vec![],
        };
        // Those of a message are tried elsewhere.
        let fields = fields.split("; of").next().unwrap_or_default().trim_end_matches(" |");
        let named =
            fields.split(", ").filter_map(|field| field.strip_prefix('`')?.strip_suffix('`'));
        for field in named.filter(|field| !field.contains(['.', '`'])) {
            let (name, value) = match field.split_once(": ") {
                Some((name, "true")) => (name, json!(true)),
                Some((name, word)) => (name, json!(word)),
                None => (field, json!(true)),
            };
            for (path, body) in &paths {
                let mut body = body.clone();
                body[name] = value.clone();
                let reply = server.post(path, &body);
                assert_eq!(reply.status, 400, "{path} {name}");
                let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
                assert!(message.contains(name), "{path}: {message}");
                assert!(!message.contains("unknown"), "{path}: {message}");
                refused += 1;
            }
        }
    }
    assert!(refused > 40, "{refused}");
}
