//! The `prompt` of a completion request.

use serde_json::Value;

use super::error::ApiError;
use super::fields::{Fields, wrong_type};

/// A prompt as sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PromptField {
    /// Text without control tokens, whatever it spells.
    Text(String),
    /// Ids, used as they are.
    Ids(Vec<u32>),
}

/// Takes `prompt`: a text, a list of ids, or a list of just one of either.
pub(super) fn take_prompt(fields: &mut Fields, vocabulary: u32) -> Result<PromptField, ApiError> {
    let value = fields.take("prompt").ok_or_else(|| fields.missing("prompt"))?;
    match value {
        Value::Array(mut list) if matches!(list[..], [Value::String(_) | Value::Array(_)]) => {
            one(list.remove(0), vocabulary)
        }
        Value::Array(list) if matches!(list.first(), Some(Value::String(_) | Value::Array(_))) => {
            Err(ApiError::unsupported(
                "prompt",
                format!("{} prompts; one per request is supported", list.len()),
            ))
        }
        value => one(value, vocabulary),
    }
}

fn one(value: Value, vocabulary: u32) -> Result<PromptField, ApiError> {
    match value {
        Value::String(text) => Ok(PromptField::Text(text)),
        Value::Array(list) if list.is_empty() => {
            Err(ApiError::invalid("prompt", "has no tokens; send at least one"))
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, id)| {
                let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
                id.filter(|&id| id < vocabulary).ok_or_else(|| {
                    let problem = format!("not a token id; ids are 0 to {}", vocabulary - 1);
                    ApiError::invalid(&format!("prompt[{index}]"), problem)
                })
            })
            .collect::<Result<_, _>>()
            .map(PromptField::Ids),
        other => Err(wrong_type("prompt", "a string or an array of token ids", &other)),
    }
}
