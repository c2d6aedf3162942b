//! Texts that are longer than the context, and large bodies whose prompts fit it.

use std::time::Instant;

use serde_json::json;

use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, longest_token_bytes, tokenizer};

/// A server whose context holds this many tokens and that says one token to everyone.
fn server(context_tokens: u64, large_body_bytes: usize) -> TestServer {
    let mut scripted = Scripted::new(|_| Script::new(vec![5], Then::Stop));
    scripted.limits.context_tokens = context_tokens;
    scripted.pages = 1 << 20;
    TestServer::with(scripted, |options| options.large_body_bytes = large_body_bytes)
}

/// A refusal says how many tokens a text has; one that says "at least" did not count them.
#[test]
fn what_is_surely_too_long_is_refused_before_it_is_tokenised() {
    let server = server(4096, 1 << 20);
    let text = "whale ".repeat((20 << 20) / 6);
    let least = text.len().div_ceil(longest_token_bytes());
    for (reply, field, least) in [
        (server.completion(&completion(json!({ "prompt": text }))), "prompt", least),
        (server.completion(&completion(json!({ "prompt": ["Hi", text] }))), "prompt[1]", least),
        // In front of the text two control tokens, behind it two more.
        (
            server.chat(&chat(json!({ "messages": [{ "role": "user", "content": text }] }))),
            "messages",
            least + 4,
        ),
    ] {
        let (param, message) = reply.refusal(400);
        assert_eq!(reply.json()["error"]["code"], "context_length_exceeded");
        assert_eq!(param.as_deref(), Some(field));
        let counted = format!("has at least {least} tokens");
        assert!(message.contains(&counted) && message.contains("4096"), "{message}");
    }
    assert!(server.seen.lock().unwrap().jobs.is_empty());
}

#[test]
fn what_might_fit_is_counted() {
    let server = server(64, 1 << 20);
    let most_bytes = 63 * longest_token_bytes();
    let refusal = |bytes: usize| {
        let body = completion(json!({ "prompt": "é".repeat(bytes / 2) + &"a".repeat(bytes % 2) }));
        server.completion(&body).refusal(400).1
    };
    let counted = refusal(most_bytes);
    assert!(counted.contains("has ") && !counted.contains("at least 64 tokens"), "{counted}");
    assert!(refusal(most_bytes + 1).contains("at least 64 tokens"));
    let longest = (0..2048)
        .filter(|&id| !tokenizer().is_added(id))
        .max_by_key(|&id| tokenizer().token_bytes(id).unwrap().len());
    let longest = tokenizer().decode(&[longest.unwrap()]).unwrap();
    let text = String::from_utf8(longest).unwrap();
    assert_eq!(
        server.completion(&completion(json!({ "prompt": text }))).ok()["usage"]["prompt_tokens"],
        2
    );
}

fn under_way(server: &TestServer) -> u64 {
    server.get("/health").ok()["requests_under_way"].as_u64().unwrap()
}

/// The large body that came first is prepared first, though the second takes a fraction of the
/// time and is not even parsed meanwhile; a small one passes both.
#[test]
fn large_bodies_are_prepared_one_at_a_time() {
    let server = server(1 << 24, 8 << 10);
    let [first, second] = [512 << 10, 12 << 10].map(|bytes| "whale ".repeat(bytes / 6));
    let first = completion(json!({ "prompt": first }));
    let second = chat(json!({ "messages": [{ "role": "user", "content": second }] })).to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| server.completion(&first).ok());
        server.wait_until("the first is read", |server| under_way(server) == 1);
        let mut waiting = server.connect();
        waiting.send_request("POST", "/v1/chat/completions", Some(second.as_bytes()));
        server.completion(&completion(json!({}))).ok();
        server.wait_until("the small one is over", |server| under_way(server) == 1);
        assert_eq!(server.seen.lock().unwrap().jobs.len(), 1, "only the small one");
        waiting.reply().ok();
    });
    let seen = server.seen.lock().unwrap();
    let prompts: Vec<_> = seen.jobs.iter().map(|job| job.prompt.len()).collect();
    assert_eq!(prompts.len(), 3);
    assert!(prompts[0] < prompts[2] && prompts[2] < prompts[1], "{prompts:?}");
}

/// None of the prompts is looked at: their ids are wrong, too.
#[test]
fn too_many_prompts_are_refused_unread() {
    let mut scripted = Scripted::new(|_| Script::new(vec![5], Then::Stop));
    scripted.limits.max_sequences = 2;
    let few = TestServer::with(scripted, |options| options.max_queued_requests = 1);
    for (server, most) in [(few, 3), (server(4096, 1 << 10), 128)] {
        let refusal = |prompts: usize| {
            let prompts = vec![json!([2048]); prompts];
            server.completion(&completion(json!({ "prompt": prompts }))).refusal(400)
        };
        assert_eq!(refusal(most).0.as_deref(), Some("prompt[0][0]"));
        let (param, message) = refusal(most + 1);
        assert_eq!(param.as_deref(), Some("prompt"));
        assert!(message.contains(&format!("room for {most}")), "{message}");
    }
}

/// Its place is free long before its prompts could have been tokenised.
#[test]
fn hanging_up_stops_the_work_at_the_next_prompt_or_message() {
    let server = server(1 << 24, 8 << 10);
    let text = "whale ".repeat((32 << 10) / 6);
    let role = |turn| if turn % 2 == 0 { "user" } else { "assistant" };
    let message = |turn| json!({ "role": role(turn), "content": text });
    let messages: Vec<_> = (0..48).map(message).collect();
    for (path, body) in [
        ("/v1/completions", completion(json!({ "prompt": vec![&text; 48] }))),
        ("/v1/chat/completions", chat(json!({ "messages": messages }))),
    ] {
        let body = body.to_string();
        let start = || {
            let mut connection = server.connect();
            connection.send_request("POST", path, Some(body.as_bytes()));
            server.wait_until("it is read", |server| under_way(server) > 0);
            (connection, Instant::now())
        };
        let (mut patient, began) = start();
        patient.reply();
        let whole = began.elapsed();
        server.wait_until("it is over", |server| under_way(server) == 0);
        let jobs = server.seen.lock().unwrap().jobs.len();
        let (hasty, began) = start();
        drop(hasty);
        server.wait_until("nothing is held", |server| under_way(server) == 0);
        let stopped = began.elapsed();
        assert!(stopped < whole / 4, "{path}: {stopped:?} of {whole:?}");
        assert_eq!(server.seen.lock().unwrap().jobs.len(), jobs);
    }
}
