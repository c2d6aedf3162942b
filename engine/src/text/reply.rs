//! A whole reply, collected from its events.

use super::error::TextError;
use super::event::{Event, FinishReason};
use super::tokenizer::Tokenizer;

/// What the model said. Streaming and not streaming show the same because this is made of the
/// same events.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reply {
    /// The reasoning.
    pub reasoning: String,
    /// The answer.
    pub content: String,
    /// The tool calls in order.
    pub calls: Vec<ReplyCall>,
    /// Why it ended; `None` while it has not.
    pub finish: Option<FinishReason>,
}

/// A tool call of a reply.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReplyCall {
    /// The tool.
    pub name: String,
    /// JSON text: an object when the call is complete, else the beginning of one.
    pub arguments: String,
    /// The call was closed by its tag.
    pub complete: bool,
}

impl Reply {
    /// Adds an event.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Reasoning(text) => self.reasoning.push_str(&text),
            Event::Content(text) => self.content.push_str(&text),
            Event::CallStart { name, .. } => {
                self.calls.push(ReplyCall { name, ..ReplyCall::default() });
            }
            Event::CallArguments { call, fragment } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments.push_str(&fragment);
                }
            }
            Event::CallEnd { call } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.complete = true;
                }
            }
            Event::Finish(reason) => self.finish = Some(reason),
        }
    }

    /// Tokens of the reasoning, counted by encoding the shown text again.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn reasoning_tokens(&self, tokenizer: &Tokenizer) -> Result<usize, TextError> {
        Ok(tokenizer.encode(&self.reasoning)?.len())
    }
}

impl Extend<Event> for Reply {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        for event in events {
            self.add(event);
        }
    }
}
