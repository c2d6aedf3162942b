//! Chat messages to the conversation's.
//!
//! Pictures are collected on the way; a [`Part::Picture`] has its number among them.

use serde_json::Value;

use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use super::picture_field::PictureField;
use super::tools::function_type;
use crate::text::{AssistantMessage, Message, Part, ToolCall};

/// Takes `messages` and the pictures in them.
///
/// Reasoning of earlier turns is `reasoning_content`, or `reasoning` as some servers spell it;
/// where it is missing it counts as empty.
pub(super) fn take_messages(
    fields: &mut Fields,
) -> Result<(Vec<Message>, Vec<PictureField>), ApiError> {
    let list = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
    let mut pictures = Vec::new();
    let messages = list
        .into_iter()
        .enumerate()
        .map(|(index, value)| message(&format!("messages[{index}]"), value, &mut pictures))
        .collect::<Result<_, _>>()?;
    Ok((messages, pictures))
}

fn message(
    path: &str,
    value: Value,
    pictures: &mut Vec<PictureField>,
) -> Result<Message, ApiError> {
    let mut fields = Fields::of(path, value)?;
    let role = fields.required_text("role")?;
    let message = match role.as_str() {
        // A developer speaks where the system did.
        "system" | "developer" => {
            Message::System { content: required_parts(&mut fields, pictures)? }
        }
        "user" => Message::User { content: required_parts(&mut fields, pictures)? },
        "assistant" => Message::Assistant(assistant(&mut fields)?),
        "tool" => {
            // The name of the tool says nothing that the call does not say.
            fields.text("name")?;
            let call_id = fields.text("tool_call_id")?;
            Message::Tool { call_id, content: required_parts(&mut fields, pictures)? }
        }
        "latest_reminder" => Message::LatestReminder { content: fields.required_text("content")? },
        _ => {
            return Err(ApiError::invalid(
                &fields.path("role"),
                format!(
                    "{role:?} is not system, developer, user, assistant, tool or latest_reminder"
                ),
            ));
        }
    };
    fields.finish_knowing(|name| match name {
        "name" => Some("the prompt has no place for names of speakers; put it into the text"),
        "audio" => Some("the model reads text and pictures"),
        "function_call" => Some("an older form; use tool_calls"),
        _ => None,
    })?;
    Ok(message)
}

fn assistant(fields: &mut Fields) -> Result<AssistantMessage, ApiError> {
    let reasoning = reasoning(fields)?;
    let content = assistant_content(fields)?;
    let calls_path = fields.path("tool_calls");
    let calls = fields
        .list("tool_calls")?
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .map(|(index, value)| tool_call(&format!("{calls_path}[{index}]"), value))
        .collect::<Result<Vec<_>, _>>()?;
    let prefix = fields.boolean("prefix")?.unwrap_or(false);
    // What the official clients send back of a reply; empty here, since replies have none.
    if fields.list("annotations")?.is_some_and(|list| !list.is_empty()) {
        let path = fields.path("annotations");
        return Err(ApiError::unsupported(&path, "the prompt has no place for it; leave it out"));
    }
    Ok(AssistantMessage { reasoning, content, calls, prefix })
}

fn reasoning(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let first = fields.text("reasoning_content")?;
    let second = fields.text("reasoning")?;
    match (first, second) {
        (Some(first), Some(second)) if first != second => Err(ApiError::invalid(
            &fields.path("reasoning"),
            "differs from reasoning_content; send one of them",
        )),
        (first, second) => Ok(first.or(second)),
    }
}

/// Content of the model may be absent; as parts it is text only.
fn assistant_content(fields: &mut Fields) -> Result<String, ApiError> {
    let path = fields.path("content");
    let mut texts = Vec::new();
    let parts = parts(fields, &mut Vec::new())?.unwrap_or_default();
    for (index, part) in parts.into_iter().enumerate() {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Picture(_) => {
                let problem = "the model sends no pictures; only text is possible here";
                return Err(ApiError::invalid(&format!("{path}[{index}]"), problem));
            }
        }
    }
    Ok(texts.join("\n\n"))
}

fn tool_call(path: &str, value: Value) -> Result<ToolCall, ApiError> {
    let mut fields = Fields::of(path, value)?;
    function_type(&mut fields)?;
    let id = fields.required_text("id")?;
    // Chunks of a stream number their calls; clients that collect them send the number back.
    fields.integer("index", 0..=i128::from(u64::MAX))?;
    let mut function = fields.object("function")?.ok_or_else(|| fields.missing("function"))?;
    fields.finish()?;
    let name = function.required_text("name")?;
    let arguments = function.text("arguments")?.unwrap_or_default();
    function.finish()?;
    Ok(ToolCall { id, name, arguments })
}

fn required_parts(
    fields: &mut Fields,
    pictures: &mut Vec<PictureField>,
) -> Result<Vec<Part>, ApiError> {
    parts(fields, pictures)?.ok_or_else(|| fields.missing("content"))
}

/// Takes `content`: a text or a list of parts.
fn parts(
    fields: &mut Fields,
    pictures: &mut Vec<PictureField>,
) -> Result<Option<Vec<Part>>, ApiError> {
    let path = fields.path("content");
    match fields.take("content") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(vec![Part::Text(text)])),
        Some(Value::Array(list)) => list
            .into_iter()
            .enumerate()
            .map(|(index, value)| part(&format!("{path}[{index}]"), value, pictures))
            .collect::<Result<Vec<_>, _>>()
            .map(Some),
        Some(other) => Err(wrong_type(&path, "a string or an array of parts", &other)),
    }
}

fn part(path: &str, value: Value, pictures: &mut Vec<PictureField>) -> Result<Part, ApiError> {
    let mut fields = Fields::of(path, value)?;
    let kind = fields.required_text("type")?;
    let part = match kind.as_str() {
        "text" => Part::Text(fields.required_text("text")?),
        "image_url" => {
            pictures.push(PictureField::take(&mut fields)?);
            Part::Picture(pictures.len() - 1)
        }
        _ => {
            return Err(ApiError::unsupported(
                &fields.path("type"),
                format!("{kind:?} is not supported; send text or image_url"),
            ));
        }
    };
    fields.finish()?;
    Ok(part)
}
