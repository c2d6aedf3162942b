//! `/tokenize`, `/detokenize`, `/render` and `/version`.

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, completion, ids, merge, tokenizer};

#[test]
fn tokens_are_those_of_the_prompts() {
    let server = TestServer::of(Scripted::saying(ids("x")));
    let tokens = |body: &Value| server.post("/tokenize", body).ok();
    let text = "Call me Ishmael. 🐳 </think>";
    let told = tokens(&json!({ "prompt": text, "model": "demo", "return_token_strs": true }));
    server.completion(&completion(json!({ "prompt": text }))).ok();
    let mut messages = chat(json!({}));
    let asked = tokens(&messages);
    server.chat(&messages).ok();
    {
        let seen = server.seen.lock().unwrap();
        assert_eq!(told["tokens"], json!(seen.jobs[0].prompt));
        assert_eq!(asked["tokens"], json!(seen.jobs[1].prompt));
    }
    assert_eq!(told["count"], json!(told["tokens"].as_array().unwrap().len()));
    assert_eq!(told["token_strs"].as_array().unwrap().len() as u64, told["count"]);
    assert_eq!(told["max_model_len"], 4096);
    let bare = tokens(&json!({ "prompt": text, "add_special_tokens": false }));
    assert_eq!(bare["tokens"], json!(tokenizer().encode(text).unwrap()));
    let back = server.post("/detokenize", &json!({ "tokens": bare["tokens"] })).ok();
    assert_eq!(back["prompt"], text);
    assert_eq!(server.get("/version").ok()["version"], env!("CARGO_PKG_VERSION"));
    merge(&mut messages, json!({ "max_tokens": 3, "temperature": 0 }));
    let rendered = server.post("/render", &messages).ok();
    for field in ["tokens", "count", "max_model_len"] {
        assert_eq!(rendered[field], tokens(&messages)[field], "{field}");
    }
    let text = rendered["prompt"].as_str().unwrap();
    assert!(text.starts_with("<｜begin▁of▁sentence｜>") && text.contains("<｜User｜>"), "{text}");
    assert!(text.contains(messages["messages"][0]["content"].as_str().unwrap()), "{text}");
    let back = server.post("/detokenize", &json!({ "tokens": rendered["tokens"] })).ok();
    assert_eq!(back["prompt"], text);
    for (path, named, body) in [
        ("/render", "messages", json!({})),
        ("/render", "messages", json!({ "prompt": "x" })),
        ("/tokenize", "messages", json!({})),
        ("/tokenize", "no_such_field", json!({ "prompt": "x", "no_such_field": 1 })),
        ("/detokenize", "tokens", json!({})),
        ("/detokenize", "tokens[1]", json!({ "tokens": [1, 2048] })),
        ("/detokenize", "text", json!({ "tokens": [], "text": "x" })),
    ] {
        assert_eq!(server.post(path, &body).refusal(400).0.as_deref(), Some(named), "{path}");
    }
    merge(&mut messages, json!({ "model": "other" }));
    server.post("/tokenize", &messages).refusal(404);
}
