//! Texts that are longer than the context, and long ones that fit it.

use serde_json::json;

use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, longest_token_bytes, tokenizer};

/// A server whose context holds this many tokens and that says one token to everyone.
fn server(context_tokens: u64, long_text_bytes: usize) -> TestServer {
    let mut scripted = Scripted::new(|_| Script::new(vec![5], Then::Stop));
    scripted.limits.context_tokens = context_tokens;
    scripted.pages = 1 << 20;
    TestServer::with(scripted, |options| options.long_text_bytes = long_text_bytes)
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

/// The long text that came first is tokenised first, though the second takes a fraction of the
/// time; a short one passes both.
#[test]
fn long_texts_are_tokenised_one_at_a_time() {
    let server = server(1 << 24, 8 << 10);
    let [first, second] = [512 << 10, 12 << 10].map(|bytes| "whale ".repeat(bytes / 6));
    let first = completion(json!({ "prompt": first }));
    let second = chat(json!({ "messages": [{ "role": "user", "content": second }] }));
    let under_way =
        |server: &TestServer| server.get("/health").ok()["requests_under_way"].as_u64().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.completion(&first).ok());
        server.wait_until("the first is read", |server| under_way(server) == 1);
        scope.spawn(|| server.chat(&second).ok());
        server.wait_until("the second is read", |server| under_way(server) == 2);
        server.completion(&completion(json!({}))).ok();
    });
    let seen = server.seen.lock().unwrap();
    let prompts: Vec<_> = seen.jobs.iter().map(|job| job.prompt.len()).collect();
    assert_eq!(prompts.len(), 3);
    assert!(prompts[0] < prompts[2] && prompts[2] < prompts[1], "{prompts:?}");
}
