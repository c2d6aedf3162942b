//! Characters spread over tokens (C063) or cut by the limit (C064).

use serde_json::json;

use crate::joined::Joined;
use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, completion, tokenizer};

/// Ids of single bytes.
fn bytes(bytes: &[u8]) -> Vec<u32> {
    bytes
        .iter()
        .map(|&byte| {
            (0..2048)
                .find(|&id| {
                    !tokenizer().is_added(id)
                        && tokenizer().token_bytes(id).is_ok_and(|b| b == [byte])
                })
                .expect("a byte-level vocabulary has every byte")
        })
        .collect()
}

/// The text of a reply, which must be the same whole and streamed, chat and completion; no delta
/// may end within a character.
#[track_caller]
fn check(ids: Vec<u32>, max_tokens: u64, text: &str, finish: &str) {
    let server = TestServer::of(Scripted::saying(ids));
    let limit = json!({ "max_tokens": max_tokens });
    let whole = Joined::of_chat(&server.chat(&chat(limit.clone())).ok());
    assert_eq!((whole.text.as_str(), &whole.finish), (text, &json!(finish)));
    let stream = json!({ "max_tokens": max_tokens, "stream": true });
    let streamed = server.chat(&chat(stream.clone())).events().joined();
    assert_eq!((streamed.text.as_str(), &streamed.finish), (text, &json!(finish)));
    let bare = server.completion(&completion(limit)).ok();
    assert_eq!(bare["choices"][0]["text"], text);
    assert_eq!(bare["choices"][0]["finish_reason"], finish);
    let bare = server.completion(&completion(stream)).events().joined();
    assert_eq!((bare.text.as_str(), &bare.finish), (text, &json!(finish)));
}

#[test]
fn c063_characters_spread_over_tokens() {
    check(bytes("😊".as_bytes()), 100, "😊", "stop");
    check(bytes("a你 b".as_bytes()), 100, "a你 b", "stop");
}

#[test]
fn c063_bytes_that_cannot_become_valid_do_not_wait() {
    check(bytes(b"a\xFFb"), 100, "a\u{FFFD}b", "stop");
}

/// Documented choice: a character whose rest never came is not shown.
#[test]
fn c064_cut_in_the_middle_of_a_character() {
    check(bytes("hi😊".as_bytes()), 4, "hi", "length");
    check(bytes("hi😊".as_bytes()), 6, "hi😊", "length");
}
