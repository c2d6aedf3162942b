//! An item of the output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::serve::api::cutter::PartKind;
use crate::serve::random::random;

/// Reasoning, a message or a call.
#[derive(Clone, Debug)]
pub(super) struct Item {
    id: String,
    pub(super) kind: ItemKind,
    /// Of the item so far; arguments, of a call.
    pub(super) text: String,
    /// Log-probabilities of a message's tokens, when they are wanted.
    pub(super) log_probs: Vec<Value>,
}

/// What an item is.
#[derive(Clone, Debug)]
pub(super) enum ItemKind {
    Reasoning,
    Message,
    Call { call_id: String, name: String },
}

impl Item {
    /// An empty one.
    pub(super) fn new(part: &PartKind) -> Self {
        let id = |kind: &str| format!("{kind}_{:016x}{:016x}", random(), random());
        let (id, kind) = match part {
            PartKind::Reasoning => (id("rs"), ItemKind::Reasoning),
            PartKind::Text => (id("msg"), ItemKind::Message),
            PartKind::Call { name } => {
                (id("fc"), ItemKind::Call { call_id: id("call"), name: name.clone() })
            }
        };
        Self { id, kind, text: String::new(), log_probs: vec![] }
    }

    /// Its name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Its content, but of a call, which has none.
    pub(super) fn part(&self) -> Option<Value> {
        match self.kind {
            ItemKind::Reasoning => Some(json!({ "type": "reasoning_text", "text": self.text })),
            ItemKind::Message => Some(json!({
                "type": "output_text", "text": self.text, "annotations": [],
                "logprobs": self.log_probs,
            })),
            ItemKind::Call { .. } => None,
        }
    }

    /// As it is when it begins.
    pub(super) fn begun(&self) -> Value {
        self.shape("in_progress", &[])
    }

    /// As it is with all of its text; `encrypted` repeats reasoning for clients that send that back.
    pub(super) fn json(&self, status: &str, encrypted: bool) -> Value {
        let mut item = self.shape(status, self.part().as_slice());
        if encrypted && matches!(self.kind, ItemKind::Reasoning) {
            item["encrypted_content"] = STANDARD.encode(&self.text).into();
        }
        item
    }

    fn shape(&self, status: &str, content: &[Value]) -> Value {
        let id = &self.id;
        match &self.kind {
            ItemKind::Reasoning => json!({
                "id": id, "type": "reasoning", "status": status, "summary": [], "content": content,
            }),
            ItemKind::Message => json!({
                "id": id, "type": "message", "status": status, "role": "assistant",
                "content": content,
            }),
            ItemKind::Call { call_id, name } => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call_id,
                "name": name, "arguments": if status == "in_progress" { "" } else { &self.text },
            }),
        }
    }
}
