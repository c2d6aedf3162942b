//! A conversation as the engine understands it, whatever protocol it came by.

use serde_json::Value;

use super::effort::Effort;

/// Everything that decides the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// Whether it may, must or must not call them.
    pub tool_choice: ToolChoice,
    /// Whether the model reasons before it answers.
    pub thinking: bool,
    /// How thoroughly; ignored while `thinking` is off.
    pub effort: Effort,
    /// The form of the answer.
    pub response_format: ResponseFormat,
    /// Keep the reasoning of finished turns in the prompt. It is always kept when tools are declared.
    pub keep_reasoning: bool,
    /// An internal task for the pending turn instead of an answer; not part of the public API.
    pub task: Option<Task>,
}

impl Conversation {
    /// A conversation with the defaults of the hosted model: thinking on, effort high, text answer.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            thinking: true,
            effort: Effort::HIGH,
            response_format: ResponseFormat::Text,
            keep_reasoning: false,
            task: None,
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions, at the start or in the middle.
    System {
        /// Text and pictures.
        content: Vec<Part>,
    },
    /// What the user said.
    User {
        /// Text and pictures.
        content: Vec<Part>,
    },
    /// What the model said.
    Assistant(AssistantMessage),
    /// What a tool returned.
    Tool {
        /// The call that it answers.
        call_id: Option<String>,
        /// Text and pictures.
        content: Vec<Part>,
    },
    /// Instructions that hold for the next answer.
    LatestReminder {
        /// The text.
        content: String,
    },
}

impl Message {
    /// A system message of one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System { content: vec![Part::Text(text.into())] }
    }

    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { content: vec![Part::Text(text.into())] }
    }

    /// An assistant message of text alone.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage { content: text.into(), ..AssistantMessage::default() })
    }

    /// A tool result of one text.
    pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Tool { call_id: Some(call_id.into()), content: vec![Part::Text(text.into())] }
    }
}

/// A message of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// The reasoning that came before the answer.
    pub reasoning: Option<String>,
    /// The answer.
    pub content: String,
    /// The calls that ended it.
    pub calls: Vec<ToolCall>,
    /// The model continues this message instead of starting another. Only the last message can be
    /// continued.
    pub prefix: bool,
}

/// A piece of content. Pieces are separated by a blank line in the prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// Text, taken literally.
    Text(String),
    /// A picture, by its place in the request's list of pictures.
    Picture(usize),
}

/// A call in the history.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolCall {
    /// Identifies the call; tool results name it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as the client sent them: JSON text of an object, or anything else.
    pub arguments: String,
}

/// A declared tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name to call it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// Whether the model calls a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Never; the tools are left out of the prompt.
    None,
    /// At least one, in chat mode.
    Required,
    /// This one, in chat mode; the others are left out of the prompt.
    Named(String),
}

/// The form of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseFormat {
    /// Free text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema(Value),
}

/// An internal task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Task {
    /// Decide on an action.
    Action,
    /// Write a search query.
    Query,
    /// Judge authority.
    Authority,
    /// Name the domain.
    Domain,
    /// Write a title.
    Title,
    /// Decide which address to read.
    ReadUrl,
}
