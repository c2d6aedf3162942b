//! Answers held to a form, over the demo checkpoint: the model would say anything else.

use serde_json::{Value, json};

use crate::demo::SERVER;
use crate::joined::Joined;
use crate::support::{chat, completion, merge, tokenizer};
use tandem_engine::text::ControlToken;

/// An object that is short however the model goes on.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "is_whale": { "type": "boolean" },
            "colour": { "enum": ["white", "grey"] },
            "teeth": { "type": "array", "items": { "const": 1 }, "minItems": 1, "maxItems": 2 },
        },
        "required": ["is_whale", "colour", "teeth"],
        "additionalProperties": false,
    })
}

fn response_format() -> Value {
    let schema = json!({ "name": "whale", "schema": schema(), "strict": true });
    json!({ "type": "json_schema", "json_schema": schema })
}

#[track_caller]
fn assert_follows(content: &Value) {
    let value: Value = serde_json::from_str(content.as_str().unwrap()).expect("JSON");
    assert!(value["is_whale"].is_boolean() && value["colour"].is_string(), "{value}");
    assert!(matches!(value["teeth"].as_array().map(Vec::len), Some(1 | 2)), "{value}");
    assert_eq!(value.as_object().map(serde_json::Map::len), Some(3));
}

#[test]
fn a_chat_answers_by_a_schema() {
    for (temperature, stream) in [(0, false), (1, true), (1, false)] {
        let mut body = chat(json!({ "response_format": response_format(), "seed": 3 }));
        merge(&mut body, json!({ "temperature": temperature, "stream": stream, "n": 2 }));
        merge(&mut body, json!({ "max_tokens": 300 }));
        if !stream {
            for choice in SERVER.chat(&body).ok()["choices"].as_array().unwrap() {
                assert_eq!(choice["finish_reason"], "stop", "{choice}");
                assert_follows(&choice["message"]["content"]);
            }
            continue;
        }
        let events = SERVER.chat(&body).events();
        assert!(events.done);
        for place in 0..2 {
            let of_place = events.chunks.iter().map(|chunk| &chunk["choices"][0]);
            let of_place = of_place.filter(|choice| choice["index"] == place);
            let text: String =
                of_place.filter_map(|choice| choice["delta"]["content"].as_str()).collect();
            assert_follows(&json!(text));
        }
    }
}

/// The reasoning is free; a bias has it closed at once.
#[test]
fn the_form_begins_behind_the_reasoning() {
    let close = tokenizer().control_token(ControlToken::ThinkClose).unwrap();
    let mut body = chat(json!({ "response_format": response_format(), "max_tokens": 300 }));
    merge(&mut body, json!({ "thinking": { "type": "enabled" } }));
    merge(&mut body, json!({ "logit_bias": { (close.to_string()): 100 } }));
    let choice = SERVER.chat(&body).ok()["choices"][0].clone();
    assert_eq!(choice["finish_reason"], "stop", "{choice}");
    assert_follows(&choice["message"]["content"]);
}

#[test]
fn other_forms() {
    let held = |outputs: Value| {
        let more = json!({ "structured_outputs": outputs, "temperature": 1, "seed": 7 });
        let answer = SERVER.chat(&chat(more.clone())).ok()["choices"][0].clone();
        assert_eq!(answer["finish_reason"], "stop", "{answer}");
        let text = SERVER.completion(&completion(more)).ok()["choices"][0].clone();
        assert_eq!(text["finish_reason"], "stop", "{text}");
        [&answer["message"]["content"], &text["text"]].map(|text| text.as_str().unwrap().to_owned())
    };
    for text in held(json!({ "choice": ["Call me Ishmael.", "Whale"] })) {
        assert!(["Call me Ishmael.", "Whale"].contains(&&*text), "{text}");
    }
    for text in held(json!({ "regex": "[0-9]{3}-[a-c]{2}" })) {
        let (digits, letters) = text.split_once('-').unwrap();
        assert!(digits.parse::<u16>().is_ok() && letters.len() == 2, "{text}");
    }
    for text in held(json!({ "grammar": "start: \"sea\" (\" \" (\"salt\" | \"foam\"))~2" })) {
        assert!(text.starts_with("sea ") && text.split(' ').count() == 3, "{text}");
    }
    for text in held(json!({ "json": { "enum": [1, "two"] } })) {
        assert!(["1", "\"two\""].contains(&&*text), "{text}");
    }
    let mut object = chat(json!({ "response_format": { "type": "json_object" } }));
    object["messages"][0]["content"] = json!("Say it as JSON.");
    let bias = tokenizer().encode("}").unwrap()[0].to_string();
    merge(&mut object, json!({ "logit_bias": { bias: 100 }, "max_tokens": 200 }));
    let choice = SERVER.chat(&object).ok()["choices"][0].clone();
    let content = choice["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(content).unwrap().is_object(), "{content}");
}

#[test]
fn a_form_that_cannot_be_held_is_named() {
    let refused = |more: Value| SERVER.chat(&chat(more)).refusal(400);
    let of_schema = |schema: Value| json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } });
    let (param, message) = refused(of_schema(json!({ "type": "array", "uniqueItems": true })));
    assert_eq!(param.as_deref(), Some("response_format.json_schema.schema"));
    assert!(message.contains("uniqueItems"), "{message}");
    let tool = json!([{ "function": { "name": "f", "parameters": {} } }]);
    for (named, more) in [
        ("response_format.json_schema.schema", of_schema(Value::Null)),
        ("response_format.json_schema.schema", of_schema(json!("{}"))),
        ("response_format.json_schema", json!({ "response_format": { "type": "json_schema" } })),
        ("response_format", json!({ "response_format": { "type": "yaml" } })),
        // The prompt is to ask for it, as the protocol has it.
        ("response_format", json!({ "response_format": { "type": "json_object" } })),
        ("structured_outputs", json!({ "structured_outputs": {} })),
        ("structured_outputs", json!({ "structured_outputs": { "regex": "a", "json": {} } })),
        ("structured_outputs.regex", json!({ "structured_outputs": { "regex": "(" } })),
        ("structured_outputs.grammar", json!({ "structured_outputs": { "grammar": "start: x" } })),
        ("structured_outputs.choice", json!({ "structured_outputs": { "choice": [] } })),
        ("structured_outputs.choice[1]", json!({ "structured_outputs": { "choice": ["a", ""] } })),
        ("structured_outputs.yaml", json!({ "structured_outputs": { "yaml": "a" } })),
        (
            "structured_outputs",
            json!({ "structured_outputs": { "regex": "a" }, "response_format": response_format() }),
        ),
        (
            "response_format.json_schema.schema",
            json!({ "response_format": response_format(), "tools": tool, "tool_choice": "required" }),
        ),
        ("guided_json", json!({ "guided_json": {} })),
        // No answer can begin by these.
        ("response_format.json_schema.schema", of_schema(json!({ "$ref": "#" }))),
        ("structured_outputs.regex", json!({ "structured_outputs": { "regex": "[^\\s\\S]" } })),
        (
            "structured_outputs.grammar",
            json!({ "structured_outputs": { "grammar": "start: start" } }),
        ),
    ] {
        let (param, message) = refused(more);
        assert_eq!(param.as_deref(), Some(named), "{message}");
    }
}

/// A tool of which the arguments are short however the model goes on.
fn weather() -> Value {
    json!({ "name": "get_weather", "strict": true, "parameters": {
        "type": "object",
        "properties": {
            "city": { "enum": ["Oslo", "Lima"] },
            "days": { "type": "integer", "minimum": 1, "maximum": 9 },
        },
        "required": ["city", "days"],
        "additionalProperties": false,
    } })
}

#[track_caller]
fn assert_weather(arguments: &Value) {
    assert!(["Oslo", "Lima"].contains(&arguments["city"].as_str().unwrap()), "{arguments}");
    assert!((1..=9).contains(&arguments["days"].as_u64().unwrap()), "{arguments}");
}

#[test]
fn a_forced_call_follows_its_schema() {
    let named = json!({ "type": "function", "function": { "name": "get_weather" } });
    for (choice, stream) in [(json!("required"), false), (named, true)] {
        let mut body = chat(json!({
            "tools": [{ "type": "function", "function": weather() }], "tool_choice": choice,
            "parallel_tool_calls": false, "temperature": 1, "seed": 11, "max_tokens": 200,
        }));
        merge(&mut body, json!({ "stream": stream }));
        let reply = SERVER.chat(&body);
        let (call, finish) = if stream {
            let joined = reply.events().joined();
            (joined.calls.clone(), joined.finish.clone())
        } else {
            let joined = Joined::of_chat(&reply.ok());
            (joined.calls.clone(), joined.finish.clone())
        };
        let [(name, arguments)] = &call[..] else { panic!("{call:?}") };
        assert_eq!((&**name, finish), ("get_weather", json!("tool_calls")));
        assert_weather(&serde_json::from_str(arguments).unwrap());
    }
    let tool = weather();
    let body = json!({
        "model": "demo", "max_tokens": 200, "messages": [{ "role": "user", "content": "Hi" }],
        "tools": [{ "name": "get_weather", "input_schema": tool["parameters"] }],
        "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
    });
    let message = SERVER.post("/v1/messages", &body).ok();
    assert_eq!(message["stop_reason"], "tool_use", "{message}");
    assert_eq!(message["content"].as_array().map(Vec::len), Some(1));
    assert_weather(&message["content"][0]["input"]);
}

/// Schemas are insisted on where the request says so; elsewhere what can be followed is.
#[test]
fn a_tool_that_is_too_much_is_named_when_it_is_strict() {
    let with = |strict: bool| {
        let schema = json!({ "type": "object", "properties": {}, "minProperties": 1 });
        let tool = json!({ "name": "f", "strict": strict, "parameters": schema });
        chat(json!({
            "tools": [{ "function": tool }], "tool_choice": "required",
            "parallel_tool_calls": false, "max_tokens": 4,
        }))
    };
    let (param, message) = SERVER.chat(&with(true)).refusal(400);
    assert_eq!(param.as_deref(), Some("tools"));
    assert!(message.contains("minProperties"), "{message}");
    SERVER.chat(&with(false)).ok();
}
