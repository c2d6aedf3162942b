//! The content of a reply, block by block: one block after another, each of one kind.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::serve::random::random;
use crate::text::{Event, FinishReason};

/// A block of a reply.
#[derive(Clone, Debug)]
pub(super) enum Block {
    Thinking(String),
    Text(String),
    Call { id: String, name: String, arguments: String },
}

/// What an event does to the blocks.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A block begins, empty.
    Start(Block),
    /// The open block grows by a text.
    Grow(String),
    /// The open block is complete.
    End,
}

/// Tells where blocks begin and end.
#[derive(Debug, Default)]
pub(super) struct BlockCutter {
    open: Option<Kind>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Thinking,
    Text,
    Call,
}

impl BlockCutter {
    /// What an event changes. A reply that is over has no open block.
    pub(super) fn changes(&mut self, event: Event) -> Vec<Change> {
        let mut changes = Vec::new();
        match event {
            Event::Reasoning(text) => {
                self.switch(Kind::Thinking, || Block::Thinking(String::new()), &mut changes);
                changes.push(Change::Grow(text));
            }
            Event::Content(text) => {
                self.switch(Kind::Text, || Block::Text(String::new()), &mut changes);
                changes.push(Change::Grow(text));
            }
            Event::CallStart { name, .. } => {
                self.close(&mut changes);
                let id = format!("toolu_{:016x}{:08x}", random(), random() as u32);
                changes.push(Change::Start(Block::Call { id, name, arguments: String::new() }));
                self.open = Some(Kind::Call);
            }
            Event::CallArguments { fragment, .. } => changes.push(Change::Grow(fragment)),
            Event::CallEnd { .. } | Event::Finish(_) => self.close(&mut changes),
        }
        changes
    }

    fn switch(&mut self, kind: Kind, block: impl Fn() -> Block, changes: &mut Vec<Change>) {
        if self.open != Some(kind) {
            self.close(changes);
            changes.push(Change::Start(block()));
            self.open = Some(kind);
        }
    }

    fn close(&mut self, changes: &mut Vec<Change>) {
        if self.open.take().is_some() {
            changes.push(Change::End);
        }
    }
}

impl Block {
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
