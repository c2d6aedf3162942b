//! Log-probabilities in the shapes of the endpoints.
//!
//! They are of the logits that tokens are chosen by, after penalties, biases and what a form leaves,
//! or with `"logprobs_mode": "raw"` as the model gives them; before temperature and limits either
//! way. There is one entry per generated token, of reasoning and markup too, the stop token excepted.
//! A value of minus infinity, which JSON cannot say, is -9999, as the protocol's owner has it.

use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::fields::Fields;
use crate::sample::{MAX_LOG_PROBS, SamplingParameters};
use crate::serve::job::GeneratedToken;
use crate::text::Tokenizer;

/// Stands for minus infinity.
const NEVER: f32 = -9999.0;

/// Takes `logprobs`, `top_logprobs` and `logprobs_mode` of a chat request.
pub(super) fn take_chat(
    fields: &mut Fields,
    sampling: &mut SamplingParameters,
) -> Result<(), ApiError> {
    let wanted = fields.boolean("logprobs")?.unwrap_or(false);
    sampling.log_probs = match (wanted, top(fields, "top_logprobs")?) {
        (true, top) => Some(top.unwrap_or(0)),
        (false, None) => None,
        (false, Some(_)) => {
            return Err(ApiError::invalid("top_logprobs", "only with \"logprobs\": true"));
        }
    };
    take_mode(fields, sampling)
}

/// Takes `top_logprobs` and `logprobs_mode` of a response, which wants log-probabilities or not.
pub(super) fn take_response(
    fields: &mut Fields,
    sampling: &mut SamplingParameters,
    wanted: bool,
) -> Result<(), ApiError> {
    sampling.log_probs = match (wanted, top(fields, "top_logprobs")?) {
        (true, top) => Some(top.unwrap_or(0)),
        (false, None | Some(0)) => None,
        (false, Some(_)) => {
            let problem = "only with message.output_text.logprobs in include";
            return Err(ApiError::invalid("top_logprobs", problem));
        }
    };
    take_mode(fields, sampling)
}

/// Takes `logprobs` and `logprobs_mode` of a completion request.
pub(super) fn take_completion(
    fields: &mut Fields,
    sampling: &mut SamplingParameters,
) -> Result<(), ApiError> {
    sampling.log_probs = top(fields, "logprobs")?;
    take_mode(fields, sampling)
}

fn take_mode(fields: &mut Fields, sampling: &mut SamplingParameters) -> Result<(), ApiError> {
    let name = "logprobs_mode";
    let Some(mode) = fields.text(name)? else { return Ok(()) };
    sampling.raw_log_probs = match mode.as_str() {
        "processed" => false,
        "raw" => true,
        _ => return Err(ApiError::invalid(name, format!("{mode:?} is neither processed nor raw"))),
    };
    match sampling.log_probs {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid(name, "only where log-probabilities are asked for")),
    }
}

fn top(fields: &mut Fields, name: &str) -> Result<Option<u64>, ApiError> {
    let count = fields.integer(name, 0..=i128::from(MAX_LOG_PROBS))?;
    Ok(count.and_then(|count| u64::try_from(count).ok()))
}

/// The entry of a token in a chat reply; `None` when it has no log-probabilities.
pub(super) fn chat_entry(tokenizer: &Tokenizer, token: &GeneratedToken) -> Option<Value> {
    let logprobs = token.log_probs.as_ref()?;
    let entry = |id: u32, value: f32| {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut entry = Map::new();
        entry.insert("token".to_owned(), text.into());
        entry.insert("logprob".to_owned(), finite(value).into());
        entry.insert("bytes".to_owned(), bytes.into());
        entry
    };
    let top: Vec<_> = logprobs.top.iter().map(|&(id, value)| entry(id, value)).collect();
    let mut chosen = entry(token.id, logprobs.chosen);
    chosen.insert("top_logprobs".to_owned(), json!(top));
    Some(Value::Object(chosen))
}

/// The lists of a completion reply, growing token by token.
#[derive(Debug, Default)]
pub(super) struct CompletionLogprobs {
    tokens: Vec<String>,
    values: Vec<f32>,
    top: Vec<Map<String, Value>>,
    offsets: Vec<usize>,
    /// Characters of all tokens so far, also of those that were taken.
    characters: usize,
}

impl CompletionLogprobs {
    /// Adds a token. Offsets count characters of the tokens' texts, each token by itself.
    pub(super) fn push(&mut self, tokenizer: &Tokenizer, token: &GeneratedToken) {
        let Some(logprobs) = &token.log_probs else { return };
        let text = |id| {
            String::from_utf8_lossy(tokenizer.token_bytes(id).unwrap_or_default()).into_owned()
        };
        let mut top = Map::new();
        for &(id, value) in &logprobs.top {
            // Of two ids with one spelling the likelier comes first and stays.
            top.entry(text(id)).or_insert_with(|| finite(value).into());
        }
        let chosen = text(token.id);
        self.offsets.push(self.characters);
        self.characters += chosen.chars().count();
        self.tokens.push(chosen);
        self.values.push(finite(logprobs.chosen));
        self.top.push(top);
    }

    /// What was added since the last time, `None` when that is nothing.
    pub(super) fn take(&mut self) -> Option<Value> {
        if self.tokens.is_empty() {
            return None;
        }
        Some(json!({
            "tokens": std::mem::take(&mut self.tokens),
            "token_logprobs": std::mem::take(&mut self.values),
            "top_logprobs": std::mem::take(&mut self.top),
            "text_offset": std::mem::take(&mut self.offsets),
        }))
    }
}

fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { NEVER }
}
