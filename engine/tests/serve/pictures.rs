//! Pictures in chat messages: read, placed, and refused one by one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tandem_engine::exec::PromptPicture;

use crate::demo::{PAGES, SERVER};
use crate::joined::Joined;
use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, ids, merge};

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens");
    std::fs::read(format!("{folder}/{name}.png")).unwrap()
}

fn url(file: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(file))
}

fn part(url: &str) -> Value {
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// A user message of pictures and a question.
fn asking(pictures: &[Value], more: Value) -> Value {
    let text = json!({ "type": "text", "text": "What colour is it?" });
    let content: Vec<_> = pictures.iter().cloned().chain([text]).collect();
    let mut body = chat(json!({
        "messages": [{ "role": "user", "content": content }],
        "max_tokens": 8, "logprobs": true, "top_logprobs": 2,
    }));
    merge(&mut body, more);
    body
}

/// The one choice and the usage.
#[track_caller]
fn said(body: &Value) -> (Value, Value) {
    let reply = SERVER.chat(body).ok();
    (reply["choices"][0].clone(), reply["usage"].clone())
}

#[test]
fn pictures_and_texts_batched_say_what_each_says_alone() {
    let [picture, odd] = ["picture", "picture_odd"].map(|name| part(&url(&file(name))));
    let bodies = [
        asking(&[], json!({})),
        asking(std::slice::from_ref(&picture), json!({})),
        asking(std::slice::from_ref(&odd), json!({})),
        asking(&[picture.clone(), picture.clone()], json!({})),
        asking(&[picture, odd], json!({})),
    ];
    let alone: Vec<_> = bodies.iter().map(said).collect();
    let tokens = |at: usize| alone[at].1["prompt_tokens"].as_u64().unwrap();
    // Spans of 2 * (2 + 1) + 2 and of 2 * (3 + 1) + 2 tokens, each with a blank line behind it.
    let blank = ids("\n\n").len() as u64;
    assert!(tokens(1) - tokens(0) <= 8 + blank && tokens(1) - tokens(0) >= 8);
    assert_eq!(tokens(2) - tokens(1), 2);
    assert!(tokens(4) > tokens(3) && tokens(3) >= tokens(1) + 8);
    for (at, (choice, _)) in alone.iter().enumerate() {
        for (other, _) in &alone[..at] {
            assert_ne!(choice["logprobs"], other["logprobs"], "{at}");
        }
    }
    std::thread::scope(|scope| {
        for (body, alone) in bodies.iter().zip(&alone).chain(bodies.iter().zip(&alone)) {
            scope.spawn(move || assert_eq!(said(body), *alone));
            scope.spawn(move || {
                let mut streamed = body.clone();
                let options = json!({ "include_usage": true });
                merge(&mut streamed, json!({ "stream": true, "stream_options": options }));
                let whole = Joined::of_chat(&SERVER.chat(body).ok());
                SERVER.chat(&streamed).events().joined().assert_same(&whole);
            });
        }
    });
    SERVER.wait_until_free(PAGES);
}

/// Each with where it is wrong and what the message says.
fn bad_parts() -> Vec<(Value, &'static str, &'static str)> {
    let png = file("picture");
    let cut = url(&png[..png.len() / 2]);
    let mut wide = png.clone();
    // The header's width; its checksum is wrong then, whatever else is.
    wide[16..20].copy_from_slice(&9000_u32.to_be_bytes());
    let object = |more: Value| json!({ "type": "image_url", "image_url": more });
    let good = url(&png);
    vec![
        (part("https://example.com/a.png"), ".image_url.url", "not fetched"),
        (part("file:///etc/passwd"), ".image_url.url", "not fetched"),
        (part(""), ".image_url.url", "not fetched"),
        (part("data:image/png,abc"), ".image_url.url", "not base64"),
        (part("data:image/png;base64"), ".image_url.url", "not base64"),
        (part("data:image/png;base64,@@"), ".image_url.url", "not base64"),
        (part("data:image/webp;base64,AAAA"), ".image_url.url", "image/webp"),
        (part("data:text/html;base64,AAAA"), ".image_url.url", "text/html"),
        (part("data:image/png;base64,"), ".image_url.url", "neither PNG nor JPEG"),
        (part("data:image/png;base64,AAAA"), ".image_url.url", "neither PNG nor JPEG"),
        (part(&cut), ".image_url.url", "PNG picture does not decode"),
        (part(&url(&wide)), ".image_url.url", "PNG picture does not decode"),
        (json!({ "type": "image_url", "image_url": good }), ".image_url", "an object"),
        (json!({ "type": "image_url" }), ".image_url", "required"),
        (object(json!({ "detail": "high" })), ".image_url.url", "required"),
        (object(json!({ "url": good, "detail": "low" })), ".image_url.detail", "low"),
        (object(json!({ "url": good, "more": 1 })), ".image_url.more", "unknown"),
        (json!({ "type": "input_audio", "input_audio": {} }), ".type", "send text or image_url"),
    ]
}

#[test]
fn bad_pictures_are_named_and_others_go_on() {
    let good = part(&url(&file("picture")));
    let expected = said(&asking(std::slice::from_ref(&good), json!({})));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                assert_eq!(said(&asking(std::slice::from_ref(&good), json!({}))), expected);
            }
        });
        for (bad, field, what) in bad_parts() {
            let body = asking(&[good.clone(), bad], json!({}));
            let (param, message) = SERVER.chat(&body).refusal(400);
            assert_eq!(param.unwrap(), format!("messages[0].content[1]{field}"), "{message}");
            assert!(message.contains(what), "{message}");
        }
    });
    let detail = json!({ "url": url(&file("picture")), "detail": "high" });
    let high = json!({ "type": "image_url", "image_url": detail });
    assert_eq!(said(&asking(&[high], json!({}))), expected);
}

fn scripted() -> Scripted {
    let mut scripted = Scripted::saying(ids("red"));
    scripted.limits.pictures = true;
    scripted
}

#[test]
fn pictures_arrive_in_the_order_of_the_messages() {
    let server = TestServer::of(scripted());
    let [first, second] = ["picture", "picture_odd"].map(|name| part(&url(&file(name))));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let body = chat(json!({ "messages": [
        { "role": "system", "content": [second] },
        { "role": "user", "content": [text("Look"), first, text("and")] },
        { "role": "assistant", "content": "Yes." },
        { "role": "user", "content": "Well?" },
    ] }));
    server.chat(&body).ok();
    let job = server.seen.lock().unwrap().jobs[0].clone();
    let spans: Vec<_> = job.pictures.iter().map(PromptPicture::positions).collect();
    assert_eq!((spans[0].end - spans[0].start, spans[1].end - spans[1].start), (10, 8));
    for (at, id) in job.prompt.iter().enumerate() {
        let inside = spans.iter().any(|span| span.contains(&(at as u64)));
        assert_eq!(*id == 2038, inside, "position {at}");
    }
    let models = server.get("/v1/models").ok();
    assert_eq!(models["data"][0]["input_modalities"], json!(["text", "image"]));
}

#[test]
fn pictures_are_bounded_in_number_and_memory() {
    let picture = part(&url(&file("picture")));
    let few = TestServer::with(scripted(), |options| options.pictures.per_request = 1);
    few.chat(&asking(std::slice::from_ref(&picture), json!({}))).ok();
    let two = asking(&[picture.clone(), picture.clone()], json!({}));
    let (param, message) = few.chat(&two).refusal(400);
    assert_eq!(param.as_deref(), Some("messages[0].content[1].image_url.url"));
    assert!(message.contains("at most 1"), "{message}");
    // 36 patches of 588 values of two bytes: room for one picture, which comes back.
    let tight = TestServer::with(scripted(), |options| options.pictures.waiting_bytes = 50_000);
    for _ in 0..3 {
        tight.chat(&asking(std::slice::from_ref(&picture), json!({}))).ok();
        tight.chat(&two).refusal(429);
    }
}

#[test]
fn models_without_a_tower_say_so() {
    let server = TestServer::of(Scripted::saying(ids("red")));
    let body = asking(&[part(&url(&file("picture")))], json!({}));
    let (param, message) = server.chat(&body).refusal(400);
    assert_eq!(param.as_deref(), Some("messages[0].content[0].image_url.url"));
    assert!(message.contains("no vision tower") && message.contains("text alone"), "{message}");
    assert!(server.seen.lock().unwrap().jobs.is_empty());
}
