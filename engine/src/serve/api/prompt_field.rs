//! The `prompt` of a completion request.

use serde_json::Value;

use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use super::sampling::token_ids;

/// A prompt as sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PromptField {
    /// Text without control tokens, whatever it spells.
    Text(String),
    /// Ids, used as they are.
    Ids(Vec<u32>),
}

/// Takes `prompt`: a text, a list of ids, or a list of at most `most` of either. Each prompt comes
/// with where it is in the body.
pub(super) fn take_prompts(
    fields: &mut Fields,
    vocabulary: u32,
    most: usize,
) -> Result<Vec<(String, PromptField)>, ApiError> {
    let value = fields.take("prompt").ok_or_else(|| fields.missing("prompt"))?;
    match value {
        Value::Array(list) if matches!(list.first(), Some(Value::String(_) | Value::Array(_))) => {
            if list.len() > most {
                let problem =
                    format!("{} prompts, there is room for {most}; send fewer", list.len());
                return Err(ApiError::invalid("prompt", problem));
            }
            let prompt = |(at, value)| one(format!("prompt[{at}]"), value, vocabulary);
            list.into_iter().enumerate().map(prompt).collect()
        }
        value => Ok(vec![one("prompt".to_owned(), value, vocabulary)?]),
    }
}

fn one(path: String, value: Value, vocabulary: u32) -> Result<(String, PromptField), ApiError> {
    let prompt = match value {
        Value::String(text) => PromptField::Text(text),
        Value::Array(list) if list.is_empty() => {
            return Err(ApiError::invalid(&path, "has no tokens; send at least one"));
        }
        Value::Array(list) => PromptField::Ids(token_ids(&path, &list, vocabulary)?),
        other => return Err(wrong_type(&path, "a string or an array of token ids", &other)),
    };
    Ok((path, prompt))
}
