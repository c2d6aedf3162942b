//! The conversation: `instructions` and the items of `input`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::{take_content, text_alone};
use crate::serve::api::error::ApiError;
use crate::serve::api::fields::{Fields, wrong_type};
use crate::serve::api::picture_field::PictureField;
use crate::text::{AssistantMessage, Message, ToolCall};

/// Messages of a conversation. What the model did comes in items, of which those of one turn are one
/// message: reasoning, then text, then calls.
#[derive(Debug, Default)]
struct Turns {
    messages: Vec<Message>,
    /// The turn of the model that the items are in.
    open: Option<AssistantMessage>,
}

impl Turns {
    /// The open turn; a new one when what comes does not follow what it has.
    fn turn(&mut self, follows: impl Fn(&AssistantMessage) -> bool) -> &mut AssistantMessage {
        if !self.open.as_ref().is_some_and(follows) {
            self.close();
        }
        let empty = || AssistantMessage {
            reasoning: None,
            content: String::new(),
            calls: vec![],
            prefix: false,
        };
        self.open.get_or_insert_with(empty)
    }

    fn close(&mut self) {
        self.messages.extend(self.open.take().map(Message::Assistant));
    }

    fn push(&mut self, message: Message) {
        self.close();
        self.messages.push(message);
    }
}

/// Takes `instructions` and `input`, and the pictures in it.
pub(super) fn take_input(
    fields: &mut Fields,
) -> Result<(Vec<Message>, Vec<PictureField>), ApiError> {
    let (mut turns, mut pictures) = (Turns::default(), Vec::new());
    if let Some(instructions) = fields.text("instructions")? {
        turns.push(Message::system(instructions));
    }
    match fields.take("input") {
        None => return Err(fields.missing("input")),
        Some(Value::String(text)) => turns.push(Message::user(text)),
        Some(Value::Array(list)) => {
            for (index, value) in list.into_iter().enumerate() {
                let fields = Fields::of(&format!("input[{index}]"), value)?;
                item(fields, &mut turns, &mut pictures)?;
            }
        }
        Some(other) => return Err(wrong_type("input", "a string or an array of items", &other)),
    }
    turns.close();
    Ok((turns.messages, pictures))
}

fn item(
    mut fields: Fields,
    turns: &mut Turns,
    pictures: &mut Vec<PictureField>,
) -> Result<(), ApiError> {
    let kind = fields.text("type")?;
    // Names that a response gave, and how far it got.
    for name in ["id", "status"] {
        fields.text(name)?;
    }
    match kind.as_deref().unwrap_or("message") {
        "message" => message(&mut fields, turns, pictures)?,
        "reasoning" => {
            let text = reasoning(&mut fields)?;
            turns.turn(|_| false).reasoning = text;
        }
        "function_call" => {
            let id = fields.required_text("call_id")?;
            let name = fields.required_text("name")?;
            let arguments = fields.text("arguments")?.unwrap_or_default();
            turns.turn(|_| true).calls.push(ToolCall { id, name, arguments });
        }
        "function_call_output" => {
            let call_id = Some(fields.required_text("call_id")?);
            let content = take_content(&mut fields, "output", pictures)?;
            turns.push(Message::Tool { call_id, content });
        }
        other => {
            let problem = format!(
                "{other:?} is not supported; send message, reasoning, function_call or \
                 function_call_output"
            );
            return Err(ApiError::unsupported(&fields.path("type"), problem));
        }
    }
    fields.finish_knowing(|name| match name {
        "phase" | "namespace" => Some("the prompt has no place for it; leave it out"),
        _ => None,
    })
}

fn message(
    fields: &mut Fields,
    turns: &mut Turns,
    pictures: &mut Vec<PictureField>,
) -> Result<(), ApiError> {
    let role = fields.required_text("role")?;
    let path = fields.path("content");
    let content = take_content(fields, "content", pictures)?;
    match role.as_str() {
        "user" => turns.push(Message::User { content }),
        // A developer speaks where the system did.
        "system" | "developer" => turns.push(Message::System { content }),
        "assistant" => {
            let text = text_alone(&path, content)?;
            let follows =
                |turn: &AssistantMessage| turn.content.is_empty() && turn.calls.is_empty();
            turns.turn(follows).content = text;
        }
        _ => {
            let problem = format!("{role:?} is not user, assistant, system or developer");
            return Err(ApiError::invalid(&fields.path("role"), problem));
        }
    }
    Ok(())
}

/// The text of reasoning: its content or, without one, what `encrypted_content` repeats of it. A
/// summary is no reasoning of this model's, which makes none.
fn reasoning(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    if fields.list("summary")?.is_some_and(|list| !list.is_empty()) {
        let problem = "the prompt has no place for it; send the reasoning itself as content";
        return Err(ApiError::unsupported(&fields.path("summary"), problem));
    }
    let path = fields.path("content");
    let mut texts = Vec::new();
    for (index, value) in fields.list("content")?.unwrap_or_default().into_iter().enumerate() {
        let mut part = Fields::of(&format!("{path}[{index}]"), value)?;
        let kind = part.required_text("type")?;
        if kind != "reasoning_text" {
            let problem = format!("{kind:?} is not supported; only reasoning_text is");
            return Err(ApiError::unsupported(&part.path("type"), problem));
        }
        texts.push(part.required_text("text")?);
        part.finish()?;
    }
    let path = fields.path("encrypted_content");
    let repeated = fields.text("encrypted_content")?;
    if !texts.is_empty() {
        return Ok(Some(texts.join("\n\n")));
    }
    let Some(repeated) = repeated else { return Ok(None) };
    let bytes = STANDARD.decode(repeated).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let problem = "is not what this server gave; send the reasoning as content";
    text.map(Some).ok_or_else(|| ApiError::invalid(&path, problem))
}
