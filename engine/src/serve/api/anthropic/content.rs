//! The content of a reply, block by block.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::serve::api::cutter::PartKind;
use crate::serve::random::random;
use crate::text::FinishReason;

/// A block of a reply.
#[derive(Clone, Debug)]
pub(super) enum Block {
    Thinking(String),
    Text(String),
    Call { id: String, name: String, arguments: String },
}

impl Block {
    /// An empty one.
    pub(super) fn new(part: PartKind) -> Self {
        match part {
            PartKind::Reasoning => Self::Thinking(String::new()),
            PartKind::Text => Self::Text(String::new()),
            PartKind::Call { name } => {
                let id = format!("toolu_{:016x}{:08x}", random(), random() as u32);
                Self::Call { id, name, arguments: String::new() }
            }
        }
    }

    /// Appends to it.
    pub(super) fn grow(&mut self, more: &str) {
        match self {
            Self::Thinking(text) | Self::Text(text) => text.push_str(more),
            Self::Call { arguments, .. } => arguments.push_str(more),
        }
    }

    /// As it is now. Arguments that were cut short, and so are no JSON, are their text.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Thinking(text) => {
                json!({ "type": "thinking", "thinking": text, "signature": signature(text) })
            }
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Call { id, name, arguments } => {
                let input: Value = match &**arguments {
                    "" => json!({}),
                    text => serde_json::from_str(text).unwrap_or_else(|_| json!({ "cut": text })),
                };
                json!({ "type": "tool_use", "id": id, "name": name, "input": input })
            }
        }
    }
}

/// What clients send back with a thinking block. Any is taken: the server need not trust it.
pub(super) fn signature(thinking: &str) -> String {
    let digest = Sha256::digest(thinking.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Why a reply is over, and the stop string that ended it.
pub(super) fn stop(finish: FinishReason, stop: Option<&str>) -> Value {
    let reason = match finish {
        FinishReason::Stop if stop.is_some() => "stop_sequence",
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
    };
    json!({ "stop_reason": reason, "stop_sequence": stop })
}
