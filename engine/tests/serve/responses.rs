//! OpenAI's newer protocol, over a scripted engine and the demo.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::demo::SERVER;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, ids, merge, tokenizer};

const PATH: &str = "/v1/responses";

const CALL: &str = "<｜DSML｜ invoke name=\"get_weather\">\n\
                    <｜DSML｜ parameter name=\"city\" string=\"true\">Pa\"ris</｜DSML｜ parameter>\n\
                    </｜DSML｜ invoke>\n";

fn reply() -> String {
    format!("Hmm.</think>Let me see.\n\n<｜DSML｜ calls>\n{CALL}{CALL}</｜DSML｜ calls>")
}

fn request(more: Value) -> Value {
    let mut body = json!({ "model": "demo", "input": "Hi", "max_output_tokens": 500 });
    merge(&mut body, more);
    body
}

fn weather() -> Value {
    json!({
        "type": "function", "name": "get_weather", "description": "Weather.",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        "strict": null,
    })
}

/// The events of a stream; each is named and numbered.
#[track_caller]
fn events(server: &TestServer, body: &Value) -> Vec<Value> {
    let mut body = body.clone();
    merge(&mut body, json!({ "stream": true }));
    let reply = server.post(PATH, &body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let text = String::from_utf8(reply.body).unwrap();
    let frames = text.trim_end().split("\n\n").enumerate().map(|(number, frame)| {
        let (name, data) = frame.split_once('\n').expect("a name and data");
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event["type"], name.strip_prefix("event: ").unwrap());
        assert_eq!(event["sequence_number"], number);
        event
    });
    frames.collect()
}

/// The response that events add up to; checks their order and that what ends repeats what came.
#[track_caller]
fn joined(events: &[Value]) -> Value {
    let [created, in_progress, middle @ .., last] = events else { panic!("{events:?}") };
    assert_eq!(created["type"], "response.created");
    assert_eq!(in_progress["type"], "response.in_progress");
    for begun in [created, in_progress] {
        assert_eq!(
            (&begun["response"]["status"], &begun["response"]["output"]),
            (&json!("in_progress"), &json!([]))
        );
    }
    let (mut items, mut text, mut open) = (Vec::<Value>::new(), String::new(), None::<String>);
    for event in middle {
        let place = event["output_index"].as_u64().unwrap() as usize;
        let kind = event["type"].as_str().unwrap().strip_prefix("response.").unwrap();
        if kind != "output_item.added" {
            assert_eq!(place + 1, items.len(), "{event}");
        }
        if let Some(id) = event.get("item_id") {
            assert_eq!(*id, items[place]["id"], "{event}");
        }
        match kind {
            "output_item.added" => {
                assert_eq!((place, open.take()), (items.len(), None));
                assert_eq!(event["item"]["status"], "in_progress");
                items.push(event["item"].clone());
                text.clear();
                open = Some(event["item"]["type"].as_str().unwrap().to_owned());
            }
            "content_part.added" => assert_eq!(event["part"]["text"], ""),
            "output_text.delta" | "reasoning_text.delta" | "function_call_arguments.delta" => {
                text += event["delta"].as_str().unwrap();
            }
            "output_text.done" | "reasoning_text.done" => assert_eq!(event["text"], *text),
            "function_call_arguments.done" => assert_eq!(event["arguments"], *text),
            "content_part.done" => assert_eq!(event["part"]["text"], *text),
            "output_item.done" => {
                assert_eq!(event["item"]["id"], items[place]["id"]);
                items[place] = event["item"].clone();
                assert_eq!(items[place]["type"].as_str(), open.take().as_deref());
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(open, None, "the last item ended");
    let response = last["response"].clone();
    assert_eq!(last["type"], format!("response.{}", response["status"].as_str().unwrap()));
    assert_eq!(response["output"], json!(items));
    assert_eq!(response["id"], created["response"]["id"]);
    response
}

fn without_ids(mut response: Value) -> Value {
    (response["id"], response["created_at"]) = (Value::Null, Value::Null);
    for item in response["output"].as_array_mut().unwrap() {
        for name in ["id", "call_id"] {
            item.as_object_mut().unwrap().shift_remove(name);
        }
    }
    response
}

/// The response in both modes, which must agree but for ids.
#[track_caller]
fn both(server: &TestServer, body: &Value) -> Value {
    let whole = server.post(PATH, body).ok();
    assert_eq!(whole["object"], "response");
    let streamed = joined(&events(server, body));
    assert_eq!(without_ids(streamed), without_ids(whole.clone()));
    whole
}

#[test]
fn reasoning_text_and_calls_are_items() {
    let server = TestServer::of(Scripted::saying(ids(&reply())));
    let tools = json!({ "tools": [weather()], "metadata": { "who": "me" } });
    let whole = both(&server, &request(tools));
    let kinds: Vec<_> =
        whole["output"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(
        whole["output"][0]["content"][0],
        json!({ "type": "reasoning_text", "text": "Hmm." })
    );
    assert_eq!(whole["output"][0].get("encrypted_content"), None);
    assert_eq!(whole["output"][1]["content"][0]["text"], "Let me see.");
    let (first, second) = (&whole["output"][2], &whole["output"][3]);
    assert_eq!(first["arguments"], "{\"city\": \"Pa\\\"ris\"}");
    assert_ne!(first["call_id"], second["call_id"]);
    assert_eq!((&whole["status"], &whole["error"]), (&json!("completed"), &Value::Null));
    assert_eq!(
        (&whole["tools"][0]["name"], &whole["metadata"]["who"]),
        (&json!("get_weather"), &json!("me"))
    );
    let usage = &whole["usage"];
    // What is behind the calls is not generated, be it a token that the script still has.
    let said = ids(&reply()).len() as u64;
    assert!((said - 1..=said).contains(&usage["output_tokens"].as_u64().unwrap()), "{usage}");
    assert!(usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap() > 0);
}

#[test]
fn a_limit_leaves_the_response_incomplete() {
    let server = TestServer::of(Scripted::new(|_| Script::new(ids("Call me "), Then::Again)));
    let body = request(json!({ "max_output_tokens": 5, "reasoning": { "effort": "none" } }));
    let whole = both(&server, &body);
    assert_eq!(whole["status"], "incomplete");
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(whole["output"][0]["status"], "incomplete");
    assert_eq!(whole["usage"]["output_tokens"], 5);
}

#[test]
fn a_response_that_breaks_off_says_so() {
    let said = ids("Call me");
    let server =
        TestServer::of(Scripted::new(move |_| Script::new(said.clone(), Then::Fail("no numbers"))));
    let body = request(json!({ "reasoning": { "effort": "none" } }));
    let events = events(&server, &body);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert_eq!(last["response"]["error"]["message"], "no numbers");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Call me");
    assert_eq!(last["response"]["output"][0]["status"], "incomplete");
    server.post(PATH, &body).refusal(500);
}

/// Both protocols make one prompt of one conversation, reasoning and calls of earlier turns included.
#[test]
fn items_are_the_messages_of_a_chat() {
    let server = TestServer::of(Scripted::saying(ids(&reply())));
    let first = server.post(PATH, &request(json!({ "tools": [weather()] }))).ok();
    let output = first["output"].as_array().unwrap().clone();
    let call_ids = [2, 3].map(|at: usize| output[at]["call_id"].clone());
    let results = call_ids.iter().map(|id| {
        json!({ "type": "function_call_output", "call_id": id, "output": [{ "type": "input_text", "text": "21 C" }] })
    });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let input: Vec<Value> =
        [vec![user("Hi")], output, results.collect(), vec![user("And now?")]].concat();
    let calls = call_ids.iter().map(|id| {
        json!({
            "id": id, "type": "function",
            "function": { "name": "get_weather", "arguments": "{\"city\": \"Pa\\\"ris\"}" },
        })
    });
    let calls: Vec<_> = calls.collect();
    let result = |id: &Value| json!({ "role": "tool", "tool_call_id": id, "content": "21 C" });
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        user("Hi"),
        { "role": "assistant", "reasoning_content": "Hmm.", "content": "Let me see.", "tool_calls": calls },
        result(&call_ids[0]), result(&call_ids[1]), user("And now?"),
    ]);
    let mut function = weather();
    function.as_object_mut().unwrap().shift_remove("type");
    let tools = json!([{ "type": "function", "function": function }]);
    let response =
        request(json!({ "input": input, "tools": [weather()], "instructions": "Be brief." }));
    server.post(PATH, &response).ok();
    let mut asked = chat(json!({ "messages": messages, "tools": tools }));
    merge(&mut asked, json!({ "thinking": { "type": "enabled" } }));
    server.chat(&asked).ok();
    let seen = server.seen.lock().unwrap();
    let [.., one, other] = &seen.jobs[..] else { panic!("two jobs") };
    let prompt = |ids: &[u32]| String::from_utf8(tokenizer().decode(ids).unwrap()).unwrap();
    assert_eq!(prompt(&one.prompt), prompt(&other.prompt));
    assert!(prompt(&one.prompt).contains("Hmm."), "reasoning comes back");
}

/// Clients that keep nothing readable send reasoning back as they got it.
#[test]
fn reasoning_comes_back_in_either_spelling() {
    let server = TestServer::of(Scripted::saying(ids(&reply())));
    let include = json!(["reasoning.encrypted_content"]);
    let body = request(json!({ "tools": [weather()], "include": include }));
    let whole = both(&server, &body);
    let encrypted = whole["output"][0]["encrypted_content"].as_str().unwrap();
    assert_eq!(STANDARD.decode(encrypted).unwrap(), b"Hmm.");
    let with = |reasoning: Value| {
        let call = json!({ "type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{}" });
        let output = json!({ "type": "function_call_output", "call_id": "a", "output": "21 C" });
        let input = json!([{ "role": "user", "content": "Hi" }, reasoning, call, output]);
        server.post(PATH, &request(json!({ "input": input, "tools": [weather()] }))).ok();
        server.seen.lock().unwrap().jobs.last().unwrap().prompt.clone()
    };
    let content = json!([{ "type": "reasoning_text", "text": "Hmm." }]);
    assert_eq!(
        with(json!({ "type": "reasoning", "summary": [], "content": content })),
        with(json!({ "type": "reasoning", "summary": [], "encrypted_content": encrypted })),
    );
}

/// One entry for each token of the message, none for reasoning, markup and calls.
#[test]
fn log_probabilities_are_of_the_text_alone() {
    let include = json!(["message.output_text.logprobs"]);
    for tokens_per_step in [1, 6] {
        let scripted = Scripted { tokens_per_step, ..Scripted::saying(ids(&reply())) };
        let server = TestServer::of(scripted);
        let body = request(json!({ "tools": [weather()], "include": include, "top_logprobs": 2 }));
        let whole = both(&server, &body);
        assert_eq!(whole["top_logprobs"], 2);
        let content = &whole["output"][1]["content"][0];
        let entries = content["logprobs"].as_array().unwrap();
        let spelled: String =
            entries.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
        assert_eq!(
            (content["text"].as_str(), spelled.trim_end()),
            (Some("Let me see."), "Let me see.")
        );
        for entry in entries {
            assert_eq!(entry["top_logprobs"].as_array().unwrap().len(), 2);
            assert_eq!(entry["top_logprobs"][0]["logprob"], entry["logprob"]);
        }
        let streamed = events(&server, &body);
        let of = |name: &'static str| streamed.iter().filter(move |event| event["type"] == name);
        let deltas: Vec<_> = of("response.output_text.delta")
            .flat_map(|event| event["logprobs"].as_array().unwrap().clone())
            .collect();
        assert_eq!(&deltas, entries);
        assert!(
            of("response.output_text.done").all(|event| event["logprobs"] == content["logprobs"])
        );
        // A client may send back what it got.
        let input = json!([{ "role": "user", "content": "Hi" }, whole["output"][1], { "role": "user", "content": "And?" }]);
        server.post(PATH, &request(json!({ "input": input }))).ok();
    }
    let server = TestServer::of(Scripted::saying(ids("Aye.")));
    let bare = json!({ "reasoning": { "effort": "none" } });
    let whole = both(&server, &request(bare.clone()));
    assert_eq!(whole["output"][0]["content"][0]["logprobs"], json!([]));
    let mut body = request(bare);
    merge(&mut body, json!({ "include": include }));
    let whole = both(&server, &body);
    assert_eq!(whole["output"][0]["content"][0]["logprobs"][0]["top_logprobs"], json!([]));
}

#[test]
fn errors_name_the_field() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let item = |item: Value| json!({ "input": [item] });
    let part = |part: Value| item(json!({ "role": "user", "content": [part] }));
    for (named, more) in [
        ("previous_response_id", json!({ "previous_response_id": "resp_1" })),
        ("store", json!({ "store": true })),
        ("background", json!({ "background": true })),
        ("truncation", json!({ "truncation": "auto" })),
        ("conversation", json!({ "conversation": "c" })),
        ("max_tokens", json!({ "max_tokens": 3 })),
        ("strange", json!({ "strange": 1 })),
        ("input", json!({ "input": null })),
        ("input", json!({ "input": 3 })),
        ("input", json!({ "input": "whale ".repeat(5000) })),
        ("input[0].type", item(json!({ "type": "item_reference", "id": "rs_1" }))),
        ("input[0].role", item(json!({ "role": "tool", "content": "x" }))),
        ("input[0].content", item(json!({ "role": "user" }))),
        ("input[0].strange", item(json!({ "role": "user", "content": "x", "strange": 1 }))),
        ("input[0].call_id", item(json!({ "type": "function_call_output", "output": "x" }))),
        (
            "input[0].summary",
            item(
                json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "x" }] }),
            ),
        ),
        (
            "input[0].encrypted_content",
            item(json!({ "type": "reasoning", "encrypted_content": "?" })),
        ),
        ("input[0].content[0].type", part(json!({ "type": "input_file", "file_id": "f" }))),
        (
            "input[0].content[0].file_id",
            part(json!({ "type": "input_image", "image_url": "data:,", "file_id": "f" })),
        ),
        (
            "input[0].content[0].image_url",
            part(json!({ "type": "input_image", "image_url": "http://x" })),
        ),
        ("include[0]", json!({ "include": ["file_search_call.results"] })),
        ("top_logprobs", json!({ "top_logprobs": 2 })),
        (
            "top_logprobs",
            json!({ "top_logprobs": 21, "include": ["message.output_text.logprobs"] }),
        ),
        ("reasoning.effort", json!({ "reasoning": { "effort": "extreme" } })),
        ("reasoning.effort", json!({ "reasoning": { "effort": true } })),
        ("reasoning.summary", json!({ "reasoning": { "summary": "detailed" } })),
        ("reasoning.strange", json!({ "reasoning": { "strange": 1 } })),
        ("text.verbosity", json!({ "text": { "verbosity": "low" } })),
        ("text.format", json!({ "text": { "format": { "type": "yaml" } } })),
        ("text.format", json!({ "text": { "format": { "type": "json_object" } } })),
        (
            "text.format.schema",
            json!({ "text": { "format": { "type": "json_schema", "name": "x" } } }),
        ),
        ("text.format.strange", json!({ "text": { "format": { "type": "text", "strange": 1 } } })),
        ("tools[0].type", json!({ "tools": [{ "type": "web_search" }] })),
        ("tools[0].name", json!({ "tools": [{ "type": "function" }] })),
        (
            "tools[0].function",
            json!({ "tools": [{ "type": "function", "name": "f", "function": {} }] }),
        ),
        ("tool_choice", json!({ "tool_choice": "required" })),
        ("tool_choice.type", json!({ "tool_choice": { "type": "mcp" } })),
        (
            "stream_options.include_obfuscation",
            json!({ "stream_options": { "include_obfuscation": true } }),
        ),
        ("max_output_tokens", json!({ "max_output_tokens": 0 })),
        ("temperature", json!({ "temperature": 3 })),
    ] {
        let (param, message) = server.post(PATH, &request(more.clone())).refusal(400);
        assert_eq!(param.as_deref(), Some(named), "{message} {more}");
        assert!(message.starts_with(named), "{message}");
    }
    server.post(PATH, &request(json!({ "model": "other" }))).refusal(404);
    assert_eq!(server.get(PATH).status, 405);
    let taken = json!({
        "store": false, "background": false, "truncation": "disabled", "user": "me", "metadata": {},
        "reasoning": { "effort": "low", "summary": "auto" }, "text": { "verbosity": "medium" },
        "prompt_cache_key": "k", "stream_options": null, "tool_choice": "auto", "include": [],
        "previous_response_id": null, "parallel_tool_calls": true,
    });
    server.post(PATH, &request(taken)).ok();
}

#[test]
fn answers_follow_a_schema_and_calls_theirs() {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "enum": ["Oslo", "Lima"] }, "days": { "type": "integer", "minimum": 1, "maximum": 9 } },
        "required": ["city", "days"], "additionalProperties": false,
    });
    let follows = |text: &Value| {
        let value: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        assert!(["Oslo", "Lima"].contains(&value["city"].as_str().unwrap()), "{value}");
        assert!((1..=9).contains(&value["days"].as_u64().unwrap()), "{value}");
    };
    let format =
        json!({ "type": "json_schema", "name": "weather", "schema": schema, "strict": true });
    let body = request(json!({
        "text": { "format": format }, "reasoning": { "effort": "none" }, "temperature": 0,
    }));
    let whole = both(&SERVER, &body);
    assert_eq!(whole["status"], "completed");
    follows(&whole["output"][0]["content"][0]["text"]);
    let mut tool = weather();
    merge(&mut tool, json!({ "parameters": schema, "strict": true }));
    let body = request(json!({
        "tools": [tool], "tool_choice": { "type": "function", "name": "get_weather" },
        "parallel_tool_calls": false, "reasoning": { "effort": "none" }, "temperature": 0,
    }));
    let whole = both(&SERVER, &body);
    assert_eq!(whole["output"].as_array().unwrap().len(), 1);
    follows(&whole["output"][0]["arguments"]);
}
