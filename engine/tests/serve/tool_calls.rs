//! Tool calls in replies: cut anywhere (C069), typed and parallel (C070), before the closing tag
//! of the reasoning (C067).

use serde_json::{Value, json};

use crate::joined::Joined;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, ids, merge, tokenizer};

/// A parameter of a call: key, whether it is a string, value.
type Parameter<'a> = (&'a str, bool, &'a str);

/// Calls as the model writes them: names and parameters.
fn markup(calls: &[(&str, &[Parameter<'_>])]) -> String {
    let mut text = "\n\n<｜DSML｜ calls>\n".to_owned();
    for (name, parameters) in calls {
        text += &format!("<｜DSML｜ invoke name=\"{name}\">\n");
        for (key, string, value) in *parameters {
            text += &format!(
                "<｜DSML｜ parameter name=\"{key}\" string=\"{string}\">{value}</｜DSML｜ parameter>\n"
            );
        }
        text += "</｜DSML｜ invoke>\n";
    }
    text + "</｜DSML｜ calls>"
}

/// Ids in which every byte of ordinary text is a token of its own.
fn byte_by_byte(text: &str) -> Vec<u32> {
    ids(text)
        .into_iter()
        .flat_map(|id| {
            if tokenizer().is_added(id) {
                return vec![id];
            }
            let bytes = tokenizer().token_bytes(id).unwrap().to_vec();
            let single = |byte| {
                (0..2048)
                    .find(|&id| tokenizer().token_bytes(id).is_ok_and(|b| b == [byte]))
                    .unwrap()
            };
            bytes.into_iter().map(single).collect()
        })
        .collect()
}

fn with_tools(more: Value) -> Value {
    let mut body = chat(json!({
        "tools": [{ "type": "function", "function": {
            "name": "get_weather",
            "description": "Get the weather for a city.",
            "parameters": { "type": "object", "properties": { "location": { "type": "string" } } },
        }}],
    }));
    merge(&mut body, more);
    body
}

/// The reply in both modes, which must agree.
#[track_caller]
fn both(ids: Vec<u32>, body: &Value) -> Joined {
    let server = TestServer::of(Scripted::saying(ids));
    let whole = Joined::of_chat(&server.chat(body).ok());
    let mut stream = body.clone();
    merge(&mut stream, json!({ "stream": true, "stream_options": { "include_usage": true } }));
    let streamed = server.chat(&stream).events().joined();
    streamed.assert_same(&whole);
    for ids in [&whole.call_ids, &streamed.call_ids] {
        let mut distinct = ids.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len(), "call ids are distinct: {ids:?}");
    }
    whole
}

#[track_caller]
fn arguments(joined: &Joined, call: usize) -> Value {
    serde_json::from_str(&joined.calls[call].1).unwrap()
}

#[test]
fn c069_closing_tag_cut_anywhere() {
    for value in ["Paris", "a < b </ c 2>&1 </x>"] {
        let text = markup(&[("get_weather", &[("location", true, value)])]);
        for reply in [ids(&text), byte_by_byte(&text)] {
            let joined = both(reply, &with_tools(json!({})));
            assert_eq!(arguments(&joined, 0), json!({ "location": value }));
            assert_eq!((joined.text.as_str(), &joined.finish), ("", &json!("tool_calls")));
        }
    }
}

#[test]
fn c070_typed_parameters_and_parallel_calls() {
    let quoted = "a \"quote\" and\na newline";
    let text = markup(&[
        ("get_weather", &[("x", true, "003"), ("n", false, "3"), ("l", false, "[1,2]")]),
        ("get_weather", &[("q", true, quoted), ("e", true, "")]),
    ]);
    let joined = both(byte_by_byte(&text), &with_tools(json!({})));
    assert_eq!(joined.calls.len(), 2);
    assert_eq!(arguments(&joined, 0), json!({ "x": "003", "n": 3, "l": [1, 2] }));
    assert_eq!(arguments(&joined, 1), json!({ "q": quoted, "e": "" }));
    assert_eq!(joined.finish, "tool_calls");
}

/// Documented choice: what is marked as JSON and is none becomes a string.
#[test]
fn c070_invalid_json_becomes_a_string() {
    let text = markup(&[("get_weather", &[("x", false, "{1,"), ("y", false, "true")])]);
    let joined = both(byte_by_byte(&text), &with_tools(json!({})));
    assert_eq!(arguments(&joined, 0), json!({ "x": "{1,", "y": true }));
}

/// What follows the calls is dropped, so the engine is told to end there; whole and streamed count
/// the same tokens.
#[test]
fn nothing_is_generated_behind_the_calls() {
    let text = markup(&[("get_weather", &[])]);
    let said = ids(&text);
    let server = TestServer::of(Scripted::new(move |_| Script::new(said.clone(), Then::Again)));
    let body = server.chat(&with_tools(json!({}))).ok();
    let joined = Joined::of_chat(&body);
    assert_eq!((joined.calls.len(), &joined.finish), (1, &json!("tool_calls")));
    assert!(body["usage"]["completion_tokens"].as_u64().unwrap() <= ids(&text).len() as u64);
    server.wait_until_free(1024);
}

#[test]
fn c067_tool_call_before_the_close_tag() {
    let call = markup(&[("get_weather", &[("location", true, "Paris")])]);
    let thinking = with_tools(json!({ "thinking": { "type": "enabled" } }));
    let joined = both(ids(&format!("Let me check{call}</think>")), &thinking);
    assert_eq!((joined.reasoning.as_str(), joined.text.as_str()), ("Let me check", ""));
    assert_eq!(arguments(&joined, 0), json!({ "location": "Paris" }));
    assert_eq!(joined.finish, "tool_calls");
}

/// Without tools the markup is text: nothing asked for calls.
#[test]
fn without_tools_there_are_no_calls() {
    let text = markup(&[("f", &[])]);
    let joined = both(ids(text.trim_start()), &chat(json!({})));
    assert_eq!((joined.text.as_str(), joined.calls.len()), (text.trim_start(), 0));
    let joined = both(ids(text.trim_start()), &with_tools(json!({ "tool_choice": "none" })));
    assert_eq!((joined.calls.len(), &joined.finish), (0, &json!("stop")));
}

#[test]
fn a_required_call_begins_inside_the_block() {
    let text = markup(&[("get_weather", &[("location", true, "Rome")])]);
    let inside = text.trim_start().trim_start_matches("<｜DSML｜ calls>\n");
    for choice in
        [json!("required"), json!({ "type": "function", "function": { "name": "get_weather" } })]
    {
        let joined = both(ids(inside), &with_tools(json!({ "tool_choice": choice })));
        assert_eq!(arguments(&joined, 0), json!({ "location": "Rome" }));
    }
}

#[test]
fn a_call_cut_by_the_limit_says_so() {
    let text = markup(&[("get_weather", &[("location", true, "Paris and Rome")])]);
    let at = text.find(" and").unwrap();
    let cut = byte_by_byte(&text[..at]);
    let joined = both(byte_by_byte(&text), &with_tools(json!({ "max_tokens": cut.len() })));
    assert_eq!(joined.finish, "length");
    assert_eq!(joined.calls[0].1, "{\"location\": \"Paris");
}
