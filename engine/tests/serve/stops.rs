//! Stop strings: found across tokens (C071), delivered when they were none (C072).

use serde_json::{Value, json};

use crate::joined::Joined;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids, merge, seams};

/// Checks text, reasoning and finish reason in both modes, for every number of tokens a step.
#[track_caller]
fn check(script: &Script, body: &Value, text: &str, reasoning: &str, finish: &str) {
    for tokens_per_step in [1, 2, 6] {
        let said = script.clone();
        let scripted = Scripted { tokens_per_step, ..Scripted::new(move |_| said.clone()) };
        let server = TestServer::of(scripted);
        let whole = Joined::of_chat(&server.chat(body).ok());
        assert_eq!((whole.text.as_str(), whole.reasoning.as_str()), (text, reasoning));
        assert_eq!(whole.finish, finish);
        let mut stream = body.clone();
        merge(&mut stream, json!({ "stream": true, "stream_options": { "include_usage": true } }));
        server.chat(&stream).events().joined().assert_same(&whole);
        server.wait_until_free(1024);
    }
}

const FOX: [&str; 5] = ["The", " quick", " brown", " fox", " jumps"];

#[test]
fn c071_stop_string_over_a_token_border() {
    let fox = Script::new(seams(&FOX), Then::Again);
    check(&fox, &chat(json!({ "stop": ["own fox"] })), "The quick br", "", "stop");
    check(&fox, &chat(json!({ "stop": ["ZZ", "k br"] })), "The quic", "", "stop");
    check(&fox, &chat(json!({ "stop": "jumps" })), "The quick brown fox ", "", "stop");
    let smile = Script::new(seams(&["so ", "😊", " there"]), Then::Stop);
    check(&smile, &chat(json!({ "stop": ["😊"] })), "so ", "", "stop");
}

#[test]
fn c071_completions_stop_too() {
    let server = TestServer::of(Scripted::saying(seams(&FOX)));
    for stream in [false, true] {
        let reply =
            server.completion(&completion(json!({ "stop": ["own fox"], "stream": stream })));
        let joined = if stream {
            reply.events().joined()
        } else {
            let choice = &reply.ok()["choices"][0];
            let text = choice["text"].as_str().unwrap().to_owned();
            Joined { text, finish: choice["finish_reason"].clone(), ..Joined::default() }
        };
        assert_eq!((joined.text.as_str(), &joined.finish), ("The quick br", &json!("stop")));
    }
}

/// Tokens count up to the one that completes the stop string, however many came with it.
#[test]
fn c071_tokens_behind_the_stop_do_not_count() {
    let fox = seams(&FOX);
    let upto = seams(&FOX[..4]).len();
    for tokens_per_step in [1, 3, 16] {
        let said = fox.clone();
        let scripted = Scripted {
            tokens_per_step,
            ..Scripted::new(move |_| Script::new(said.clone(), Then::Stop))
        };
        let server = TestServer::of(scripted);
        let body = server.chat(&chat(json!({ "stop": ["own fox"] }))).ok();
        assert_eq!(body["usage"]["completion_tokens"], upto);
    }
}

#[test]
fn c072_held_back_text_is_delivered() {
    let text = "Mars?\n\nUs";
    let stop = json!({ "stop": ["\n\nUser:"] });
    check(&Script::new(ids(text), Then::Stop), &chat(stop.clone()), text, "", "stop");
    let mut limited = chat(stop);
    merge(&mut limited, json!({ "max_tokens": ids(text).len() }));
    check(&Script::new(ids(text), Then::Again), &limited, text, "", "length");
}

#[test]
fn c072_held_back_text_passes_through_the_parsers() {
    let reply = "Hm.\n\nUser: no.</think>Mars?\n\nUs";
    let mut body = chat(json!({
        "stop": ["\n\nUser:"],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
    }));
    merge(&mut body, json!({ "thinking": { "type": "enabled" } }));
    let script = Script::new(ids(reply), Then::Stop);
    check(&script, &body, "Mars?\n\nUs", "Hm.\n\nUser: no.", "stop");
}
