//! Messages of the request: content blocks to the conversation's messages.

use serde_json::{Value, json};

use crate::serve::api::error::ApiError;
use crate::serve::api::fields::{Fields, wrong_type};
use crate::serve::api::picture_field::PictureField;
use crate::text::{AssistantMessage, Message, Part, ToolCall};

/// Takes `system` and `messages`, and the pictures in them.
pub(super) fn take_messages(
    fields: &mut Fields,
) -> Result<(Vec<Message>, Vec<PictureField>), ApiError> {
    let (mut messages, mut pictures) = (Vec::new(), Vec::new());
    if let Some(system) = fields.take("system") {
        let content = blocks("system", system)?
            .into_iter()
            .map(|block| text_alone(block, "system"))
            .collect::<Result<_, _>>()?;
        messages.push(Message::System { content });
    }
    let list = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
    for (index, value) in list.into_iter().enumerate() {
        let mut message = Fields::of(&format!("messages[{index}]"), value)?;
        let role = message.required_text("role")?;
        let path = message.path("content");
        let content = message.take("content").ok_or_else(|| message.missing("content"))?;
        let content = blocks(&path, content)?;
        match role.as_str() {
            "user" => user(content, &mut messages, &mut pictures)?,
            "assistant" => messages.push(Message::Assistant(assistant(content)?)),
            _ => {
                let problem = format!("{role:?} is not user or assistant");
                return Err(ApiError::invalid(&message.path("role"), problem));
            }
        }
        message.finish()?;
    }
    // The model goes on with a message of its own that comes last.
    if let Some(Message::Assistant(last)) = messages.last_mut() {
        last.prefix = last.calls.is_empty();
    }
    Ok((messages, pictures))
}

/// The blocks of a content, a text being one.
fn blocks(path: &str, content: Value) -> Result<Vec<Fields>, ApiError> {
    match content {
        Value::String(text) => Ok(vec![Fields::of(path, json!({ "type": "text", "text": text }))?]),
        Value::Array(list) => {
            let block = |(index, value)| Fields::of(&format!("{path}[{index}]"), value);
            list.into_iter().enumerate().map(block).collect()
        }
        other => Err(wrong_type(path, "a string or an array of blocks", &other)),
    }
}

/// Takes the type of a block, and what asks for caching: caches are kept anyway.
fn take_type(block: &mut Fields) -> Result<String, ApiError> {
    block.object("cache_control")?;
    block.required_text("type")
}

fn text_alone(mut block: Fields, place: &str) -> Result<Part, ApiError> {
    let kind = take_type(&mut block)?;
    if kind != "text" {
        let problem = format!("{kind:?} is not supported in {place}; only text is");
        return Err(ApiError::unsupported(&block.path("type"), problem));
    }
    take_text(block)
}

fn take_text(mut block: Fields) -> Result<Part, ApiError> {
    let text = block.required_text("text")?;
    if block.list("citations")?.is_some_and(|list| !list.is_empty()) {
        let problem = "the prompt has no place for it; leave it out";
        return Err(ApiError::unsupported(&block.path("citations"), problem));
    }
    block.finish()?;
    Ok(Part::Text(text))
}

/// Results of tools are messages of their own; what stands between them is one each.
fn user(
    content: Vec<Fields>,
    messages: &mut Vec<Message>,
    pictures: &mut Vec<PictureField>,
) -> Result<(), ApiError> {
    let mut parts = Vec::new();
    for mut block in content {
        let kind = take_type(&mut block)?;
        if kind == "tool_result" {
            if !parts.is_empty() {
                messages.push(Message::User { content: std::mem::take(&mut parts) });
            }
            messages.push(tool_result(block, pictures)?);
        } else {
            parts.push(part(&kind, block, pictures)?);
        }
    }
    if !parts.is_empty() {
        messages.push(Message::User { content: parts });
    }
    Ok(())
}

fn part(kind: &str, mut block: Fields, pictures: &mut Vec<PictureField>) -> Result<Part, ApiError> {
    match kind {
        "text" => take_text(block),
        "image" => {
            pictures.push(PictureField::take_source(&mut block)?);
            block.finish()?;
            Ok(Part::Picture(pictures.len() - 1))
        }
        _ => {
            let problem = format!("{kind:?} is not supported; send text, image or tool_result");
            Err(ApiError::unsupported(&block.path("type"), problem))
        }
    }
}

fn tool_result(mut block: Fields, pictures: &mut Vec<PictureField>) -> Result<Message, ApiError> {
    let call_id = Some(block.required_text("tool_use_id")?);
    let mut content = Vec::new();
    if block.boolean("is_error")? == Some(true) {
        // The prompt has no other place for it.
        content.push(Part::Text("Error:".to_owned()));
    }
    let path = block.path("content");
    if let Some(value) = block.take("content") {
        for mut inner in blocks(&path, value)? {
            let kind = take_type(&mut inner)?;
            content.push(part(&kind, inner, pictures)?);
        }
    }
    block.finish()?;
    Ok(Message::Tool { call_id, content })
}

fn assistant(content: Vec<Fields>) -> Result<AssistantMessage, ApiError> {
    let (mut reasoning, mut texts) = (Vec::new(), Vec::new());
    let mut calls = Vec::new();
    for mut block in content {
        match take_type(&mut block)?.as_str() {
            "thinking" => {
                reasoning.push(block.required_text("thinking")?);
                block.text("signature")?;
            }
            "text" => {
                let Part::Text(text) = take_text(block)? else { continue };
                texts.push(text);
                continue;
            }
            "tool_use" => calls.push(ToolCall {
                id: block.required_text("id")?,
                name: block.required_text("name")?,
                arguments: block.take("input").unwrap_or_else(|| json!({})).to_string(),
            }),
            kind => {
                let problem = format!("{kind:?} is not supported; send text, thinking, tool_use");
                return Err(ApiError::unsupported(&block.path("type"), problem));
            }
        }
        block.finish()?;
    }
    let reasoning = Some(reasoning.join("\n\n")).filter(|text| !text.is_empty());
    Ok(AssistantMessage { reasoning, content: texts.join("\n\n"), calls, prefix: false })
}
