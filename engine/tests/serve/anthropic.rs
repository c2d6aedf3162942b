//! Anthropic's protocol, over a scripted engine.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::demo::SERVER;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{ids, merge};

const CALL: &str = "<｜DSML｜ invoke name=\"get_weather\">\n\
                    <｜DSML｜ parameter name=\"city\" string=\"true\">Pa\"ris</｜DSML｜ parameter>\n\
                    </｜DSML｜ invoke>\n";

fn reply() -> String {
    format!("Hmm.</think>Let me see.\n\n<｜DSML｜ calls>\n{CALL}{CALL}</｜DSML｜ calls>")
}

fn request(more: Value) -> Value {
    let mut body = json!({
        "model": "demo", "max_tokens": 500, "messages": [{ "role": "user", "content": "Hi" }],
    });
    merge(&mut body, more);
    body
}

fn with_tools(more: Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tool = json!({
        "name": "get_weather", "description": "Weather.", "input_schema": schema,
        "cache_control": { "type": "ephemeral" },
    });
    let mut body = request(json!({
        "tools": [tool], "thinking": { "type": "enabled", "budget_tokens": 1024 },
    }));
    merge(&mut body, more);
    body
}

/// The events of a stream, each with its name.
fn events(server: &TestServer, body: &Value) -> Vec<(String, Value)> {
    let mut body = body.clone();
    merge(&mut body, json!({ "stream": true }));
    let reply = server.post("/v1/messages", &body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let text = String::from_utf8(reply.body).unwrap();
    let frames = text.trim_end().split("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').expect("a name and data");
        let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        assert_eq!(value["type"], *name);
        (name, value)
    });
    frames.collect()
}

/// The message that events add up to, as the official client adds them.
fn joined(events: &[(String, Value)]) -> Value {
    let (first, rest) = events.split_first().unwrap();
    assert_eq!(first.0, "message_start");
    let mut message = first.1["message"].clone();
    let mut arguments = String::new();
    for (name, event) in rest {
        let at = event["index"].as_u64().unwrap_or(0) as usize;
        match &**name {
            "content_block_start" => {
                assert_eq!(message["content"].as_array().unwrap().len(), at);
                let block = event["content_block"].clone();
                message["content"].as_array_mut().unwrap().push(block);
                arguments.clear();
            }
            "content_block_delta" => {
                let (delta, block) = (&event["delta"], &mut message["content"][at]);
                let mut add = |field: &str, more: &Value| {
                    let text = block[field].as_str().unwrap().to_owned();
                    block[field] = json!(text + more.as_str().unwrap());
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add("text", &delta["text"]),
                    "thinking_delta" => add("thinking", &delta["thinking"]),
                    "signature_delta" => add("signature", &delta["signature"]),
                    "input_json_delta" => arguments += delta["partial_json"].as_str().unwrap(),
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => {
                if !arguments.is_empty() {
                    message["content"][at]["input"] = serde_json::from_str(&arguments).unwrap();
                }
            }
            "message_delta" => {
                for field in ["stop_reason", "stop_sequence"] {
                    message[field] = event["delta"][field].clone();
                }
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => assert_eq!(name, &events.last().unwrap().0),
            other => panic!("{other}"),
        }
    }
    message
}

/// The reply in both modes, which must agree but for ids.
#[track_caller]
fn both(scripted: impl Fn() -> Scripted, body: &Value) -> Value {
    let server = TestServer::of(scripted());
    let whole = server.post("/v1/messages", body).ok();
    let without_ids = |mut message: Value| {
        message["id"] = Value::Null;
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().shift_remove("id");
        }
        message
    };
    let streamed = joined(&events(&server, body));
    assert_eq!(without_ids(streamed), without_ids(whole.clone()));
    whole
}

#[test]
fn thinking_text_and_calls_are_blocks() {
    let scripted = || {
        let script = Script { cached_tokens: 2, ..Script::new(ids(&reply()), Then::Stop) };
        Scripted::new(move |_| script.clone())
    };
    let message = both(scripted, &with_tools(json!({})));
    assert_eq!((&message["type"], &message["role"]), (&json!("message"), &json!("assistant")));
    let content = message["content"].as_array().unwrap();
    let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(content[0]["thinking"], "Hmm.");
    assert!(content[0]["signature"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(content[1]["text"], "Let me see.");
    assert_eq!(content[2]["input"], json!({ "city": "Pa\"ris" }));
    assert_ne!(content[2]["id"], content[3]["id"]);
    assert_eq!(message["stop_reason"], "tool_use");
    let usage = &message["usage"];
    assert_eq!(usage["cache_read_input_tokens"], 2);
    let counted = TestServer::of(scripted());
    let mut body = with_tools(json!({}));
    body.as_object_mut().unwrap().shift_remove("max_tokens");
    let counted = counted.post("/v1/messages/count_tokens", &body).ok();
    assert_eq!(counted["input_tokens"].as_u64(), usage["input_tokens"].as_u64().map(|n| n + 2));
}

/// What a client sends back makes the prompt that OpenAI's protocol makes of it.
#[test]
fn history_is_that_of_the_other_protocol() {
    let server = TestServer::of(Scripted::saying(ids("x</think>Fine.")));
    let call = json!({ "type": "tool_use", "id": "t1", "name": "get_weather",
                       "input": { "city": "Oslo", "days": 2 } });
    let result = json!({ "type": "tool_result", "tool_use_id": "t1",
                         "content": [{ "type": "text", "text": "rain" }] });
    let messages = json!([
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Look it up.", "signature": "any" },
            { "type": "text", "text": "One moment." }, call ] },
        { "role": "user", "content": [result, { "type": "text", "text": "And tomorrow?" }] },
    ]);
    let system = json!([{ "type": "text", "text": "Be brief.",
                          "cache_control": { "type": "ephemeral" } }]);
    let body = with_tools(json!({ "messages": messages, "system": system, "temperature": 0.5 }));
    server.post("/v1/messages", &body).ok();
    let arguments = r#"{"city":"Oslo","days":2}"#;
    let mut chat = json!({
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Weather?" },
            { "role": "assistant", "content": "One moment.", "reasoning_content": "Look it up.",
              "tool_calls": [{ "id": "t1", "type": "function",
                               "function": { "name": "get_weather", "arguments": arguments } }] },
            { "role": "tool", "tool_call_id": "t1", "content": "rain" },
            { "role": "user", "content": "And tomorrow?" },
        ],
        "max_tokens": 500, "temperature": 0.5,
    });
    let tool = &body["tools"][0];
    chat["tools"] = json!([{ "type": "function", "function": {
        "name": tool["name"], "description": tool["description"],
        "parameters": tool["input_schema"] } }]);
    server.chat(&chat).ok();
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.jobs[0], seen.jobs[1]);
}

#[test]
fn a_reply_says_why_it_is_over() {
    let said = |text: &'static str, then: Then, more: Value| {
        let body = request(more);
        both(
            move || {
                Scripted::new({
                    let then = then.clone();
                    move |_| Script::new(ids(text), then.clone())
                })
            },
            &body,
        )
    };
    let stopped =
        said("one two STOP three", Then::Stop, json!({ "stop_sequences": ["X", "STOP"] }));
    assert_eq!(stopped["stop_reason"], "stop_sequence");
    assert_eq!(stopped["stop_sequence"], "STOP");
    assert_eq!(stopped["content"], json!([{ "type": "text", "text": "one two " }]));
    let ended = said("Fine.", Then::Stop, json!({}));
    assert_eq!(
        (&ended["stop_reason"], &ended["stop_sequence"]),
        (&json!("end_turn"), &Value::Null)
    );
    assert_eq!(said("Fine.", Then::Again, json!({ "max_tokens": 5 }))["stop_reason"], "max_tokens");
    // Thinking is off unless asked for, and a message that comes last is gone on with.
    let last =
        json!([{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "I" }]);
    assert_eq!(said(" am.", Then::Stop, json!({ "messages": last }))["content"][0]["text"], " am.");
}

#[test]
fn errors_have_the_protocol_s_shape() {
    let server = TestServer::of(Scripted::saying(ids("x")));
    let refused = |body: &Value, status: u16| {
        let reply = server.post("/v1/messages", body);
        assert_eq!(reply.status, status, "{}", String::from_utf8_lossy(&reply.body));
        let body = reply.json();
        assert_eq!(body["type"], "error");
        let error = &body["error"];
        (error["type"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    };
    for (named, more) in [
        ("max_tokens", json!({ "max_tokens": null })),
        ("max_tokens", json!({ "max_tokens": 0 })),
        ("no_such_field", json!({ "no_such_field": 1 })),
        ("temperature", json!({ "temperature": 1.5 })),
        ("service_tier", json!({ "service_tier": "auto" })),
        ("mcp_servers", json!({ "mcp_servers": [] })),
        ("tools[0].type", json!({ "tools": [{ "type": "web_search_20250305", "name": "w" }] })),
        (
            "tools[0].strange",
            json!({ "tools": [{ "name": "w", "input_schema": {}, "strange": 1 }] }),
        ),
        ("tools[0].input_schema", json!({ "tools": [{ "name": "w" }] })),
        (
            "tools[1].name",
            json!({ "tools": [{ "name": "w", "input_schema": {} }, { "name": "w", "input_schema": {} }] }),
        ),
        ("messages[0].role", json!({ "messages": [{ "role": "system", "content": "x" }] })),
        (
            "messages[0].content[0].type",
            json!({ "messages": [{ "role": "user", "content": [{ "type": "document" }] }] }),
        ),
        (
            "messages[0].content[0].source.type",
            json!({ "messages": [{ "role": "user",
             "content": [{ "type": "image", "source": { "type": "file" } }] }] }),
        ),
        ("thinking.type", json!({ "thinking": { "type": "sometimes" } })),
        ("stop_sequences", json!({ "stop_sequences": [""] })),
    ] {
        let (kind, message) = refused(&request(more), 400);
        assert_eq!(kind, "invalid_request_error");
        assert!(message.starts_with(&format!("{named}: ")), "{message}");
    }
    assert_eq!(refused(&request(json!({ "model": "other" })), 404).0, "not_found_error");
    let failing = TestServer::of(Scripted::new(|_| Script::new(ids("a b"), Then::Fail("lost"))));
    let events = events(&failing, &request(json!({})));
    let (name, last) = events.last().unwrap();
    assert_eq!((&**name, &last["error"]["type"]), ("error", &json!("api_error")));
    assert!(!events.iter().any(|(name, _)| name == "message_stop"));
}

/// A picture is the same question by either protocol.
#[test]
fn a_picture_as_a_block() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/picture.png");
    let data = STANDARD.encode(std::fs::read(path).unwrap());
    let text = json!({ "type": "text", "text": "What colour is it?" });
    let image = json!({ "type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": data } });
    let messages = json!([{ "role": "user", "content": [image, text] }]);
    let body = request(json!({ "messages": messages, "temperature": 0, "max_tokens": 8 }));
    let message = SERVER.post("/v1/messages", &body).ok();
    let url = format!("data:image/png;base64,{data}");
    let part = json!({ "type": "image_url", "image_url": { "url": url } });
    let chat = json!({
        "messages": [{ "role": "user", "content": [part, text] }], "temperature": 0,
        "max_tokens": 8, "thinking": { "type": "disabled" },
    });
    let reply = SERVER.chat(&chat).ok();
    assert_eq!(message["content"][0]["text"], reply["choices"][0]["message"]["content"]);
    let tokens = |usage: &Value, name: &str| usage[name].as_u64().unwrap();
    let counted = SERVER.post("/v1/messages/count_tokens", &{
        let mut body = body;
        body.as_object_mut().unwrap().retain(|name, _| name == "model" || name == "messages");
        body
    });
    assert_eq!(tokens(&counted.ok(), "input_tokens"), tokens(&reply["usage"], "prompt_tokens"));
}
