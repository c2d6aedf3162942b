//! A streamed reply.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::content::{Block, signature, stop};
use super::error::MessagesError;
use super::messages::message;
use super::usage;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
use crate::serve::api::cutter::{Change, ReplyCutter};
use crate::serve::job::Failure;
use crate::serve::sse::{Chunks, Frame};
use crate::serve::stamp::Stamp;
use crate::serve::usage::Usage;
use crate::text::Event;

/// An answer as named events.
pub(super) struct MessageEvents {
    cutter: ReplyCutter,
    /// The block that is open, or was last.
    block: Option<Block>,
    /// Blocks begun.
    blocks: usize,
    /// What ends the message, known before the counts are.
    ending: Option<Value>,
    ready: VecDeque<Frame>,
}

impl MessageEvents {
    pub(super) fn new(stamp: &Stamp, prompt_tokens: u64) -> Self {
        let mut body = message(stamp, &[]);
        // What of it a cache held is known at the end.
        body["usage"] = usage::json(Usage { prompt_tokens, ..Usage::default() });
        let mut events = Self {
            cutter: ReplyCutter::default(),
            block: None,
            blocks: 0,
            ending: None,
            ready: VecDeque::new(),
        };
        events.queue("message_start", json!({ "message": body }));
        events
    }

    fn queue(&mut self, name: &'static str, mut body: Value) {
        body["type"] = name.into();
        self.ready.push_back(Frame::Named(name, body));
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Start(part) => {
                let block = Block::new(part);
                let mut content = block.json();
                if let Block::Thinking(_) = block {
                    content["signature"] = "".into();
                }
                let index = self.blocks;
                self.blocks += 1;
                self.block = Some(block);
                let body = json!({ "index": index, "content_block": content });
                self.queue("content_block_start", body);
            }
            Change::Grow(more) => {
                let Some(block) = &mut self.block else { return };
                block.grow(&more);
                let delta = match block {
                    Block::Thinking(_) => json!({ "type": "thinking_delta", "thinking": more }),
                    Block::Text(_) => json!({ "type": "text_delta", "text": more }),
                    Block::Call { .. } => {
                        json!({ "type": "input_json_delta", "partial_json": more })
                    }
                };
                self.delta(&delta);
            }
            Change::End => {
                if let Some(Block::Thinking(text)) = &self.block {
                    let signature = signature(text);
                    self.delta(&json!({ "type": "signature_delta", "signature": signature }));
                }
                let index = self.blocks - 1;
                self.queue("content_block_stop", json!({ "index": index }));
            }
        }
    }

    fn delta(&mut self, delta: &Value) {
        let index = self.blocks - 1;
        self.queue("content_block_delta", json!({ "index": index, "delta": delta }));
    }
}

impl Chunks for MessageEvents {
    fn write(&mut self, _: usize, piece: Piece, _: &Answers) {
        for event in piece.events {
            if let Event::Finish(reason) = event {
                self.ending = Some(stop(reason, piece.stop.as_deref()));
            }
            for change in self.cutter.changes(event) {
                self.change(change);
            }
        }
    }

    fn end(&mut self, usage: Usage) {
        let (delta, usage) = (self.ending.take(), usage::json(usage));
        self.queue("message_delta", json!({ "delta": delta, "usage": usage }));
        self.queue("message_stop", json!({}));
    }

    fn fail(&mut self, failure: Failure) {
        self.ready.push_back(Frame::Named("error", MessagesError::from(failure).json()));
    }

    fn take(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }
}
