//! Conversations in few words.
#![allow(dead_code, reason = "each test binary uses a part")]

use serde_json::json;
use tandem_engine::text::{AssistantMessage, Conversation, Message, Tool, ToolCall};

/// Begins every prompt.
pub const BOS: &str = "<｜begin▁of▁sentence｜>";
/// Ends every assistant turn.
pub const EOS: &str = "<｜end▁of▁sentence｜>";
/// The opening of a prompt while thinking.
pub fn opening(effort: u8) -> String {
    format!(
        "{BOS}<｜System｜>Reasoning Effort: {effort} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
    )
}

/// A conversation with the defaults.
pub fn thinking(messages: Vec<Message>) -> Conversation {
    Conversation::new(messages)
}

/// A conversation in chat mode.
pub fn chat(messages: Vec<Message>) -> Conversation {
    Conversation { thinking: false, ..Conversation::new(messages) }
}

/// An assistant message with reasoning.
pub fn reasoned(reasoning: &str, content: &str) -> Message {
    Message::Assistant(AssistantMessage {
        reasoning: Some(reasoning.into()),
        content: content.into(),
        ..AssistantMessage::default()
    })
}

/// An assistant message with calls: id, name, arguments.
pub fn called(reasoning: Option<&str>, content: &str, calls: &[(&str, &str, &str)]) -> Message {
    Message::Assistant(AssistantMessage {
        reasoning: reasoning.map(Into::into),
        content: content.into(),
        calls: calls
            .iter()
            .map(|&(id, name, arguments)| ToolCall {
                id: id.into(),
                name: name.into(),
                arguments: arguments.into(),
            })
            .collect(),
        prefix: false,
    })
}

/// An assistant message to go on with.
pub fn prefix(reasoning: Option<&str>, content: &str) -> Message {
    Message::Assistant(AssistantMessage {
        reasoning: reasoning.map(Into::into),
        content: content.into(),
        prefix: true,
        ..AssistantMessage::default()
    })
}

/// A reminder.
pub fn reminder(text: &str) -> Message {
    Message::LatestReminder { content: text.into() }
}

/// A tool without description and parameters.
pub fn tool(name: &str) -> Tool {
    Tool { name: name.into(), description: String::new(), parameters: json!({}) }
}

/// The prompt as text.
pub fn rendered(conversation: &Conversation) -> String {
    conversation.prompt().unwrap().to_string()
}
