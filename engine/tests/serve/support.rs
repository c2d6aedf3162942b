//! The test tokenizer, and requests in few words.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tandem_engine::text::{ControlToken, Tokenizer};

/// The demo tokenizer.
pub fn tokenizer() -> &'static Arc<Tokenizer> {
    static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
        let bytes = include_bytes!("../../cli/demo/tokenizer.json");
        Arc::new(Tokenizer::from_bytes(bytes).expect("the demo tokenizer is in the repository"))
    });
    &TOKENIZER
}

/// Bytes of the longest token that text can become.
pub fn longest_token_bytes() -> usize {
    let plain = (0..2048).filter(|&id| !tokenizer().is_added(id));
    plain.map(|id| tokenizer().token_bytes(id).unwrap().len()).max().unwrap()
}

/// Ids of a reply in which the spellings of `</think>` and the markup's marker mean the tokens.
pub fn ids(text: &str) -> Vec<u32> {
    let markers = [ControlToken::ThinkClose, ControlToken::Dsml];
    let mut ids = Vec::new();
    let mut rest = text;
    while let Some((at, token)) = markers
        .iter()
        .filter_map(|&token| Some((rest.find(token.spelling())?, token)))
        .min_by_key(|&(at, _)| at)
    {
        ids.extend(tokenizer().encode(&rest[..at]).unwrap());
        ids.push(tokenizer().control_token(token).unwrap());
        rest = &rest[at + token.spelling().len()..];
    }
    ids.extend(tokenizer().encode(rest).unwrap());
    ids
}

/// Ids of texts that are encoded one by one, so that tokens end where the texts do.
pub fn seams(texts: &[&str]) -> Vec<u32> {
    texts.iter().flat_map(|text| ids(text)).collect()
}

/// A chat request of one user message in chat mode, with more fields.
pub fn chat(more: Value) -> Value {
    let mut body = json!({
        "messages": [{ "role": "user", "content": "Hi" }],
        "thinking": { "type": "disabled" },
        "temperature": 0,
    });
    merge(&mut body, more);
    body
}

/// A completion request with more fields.
pub fn completion(more: Value) -> Value {
    let mut body = json!({ "prompt": "Call me", "max_tokens": 100 });
    merge(&mut body, more);
    body
}

/// Puts fields into an object.
pub fn merge(body: &mut Value, more: Value) {
    let Value::Object(more) = more else { panic!("fields come as an object") };
    body.as_object_mut().unwrap().extend(more);
}
