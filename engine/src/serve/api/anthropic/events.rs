//! A streamed reply.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use serde_json::{Value, json};

use super::content::{Block, BlockCutter, Change, signature, stop};
use super::error::MessagesError;
use super::messages::message;
use super::usage;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
use crate::serve::sse::{Chunks, Frame};
use crate::serve::stamp::Stamp;
use crate::serve::usage::Usage;
use crate::text::Event;

/// An answer as named events.
pub(super) struct MessageEvents {
    answers: Answers,
    cutter: BlockCutter,
    /// The block that is open, or was last.
    block: Option<Block>,
    /// Blocks begun.
    blocks: usize,
    /// What ends the message, known before the counts are.
    ending: Option<Value>,
    ready: VecDeque<Frame>,
    is_over: bool,
}

impl MessageEvents {
    pub(super) fn new(answers: Answers, stamp: &Stamp, prompt_tokens: u64) -> Self {
        let mut body = message(stamp, &[]);
        // What of it a cache held is known at the end.
        body["usage"] = usage::json(Usage { prompt_tokens, ..Usage::default() });
        let mut events = Self {
            answers,
            cutter: BlockCutter::default(),
            block: None,
            blocks: 0,
            ending: None,
            ready: VecDeque::new(),
            is_over: false,
        };
        events.queue("message_start", json!({ "message": body }));
        events
    }

    fn queue(&mut self, name: &'static str, mut body: Value) {
        body["type"] = name.into();
        self.ready.push_back(Frame::Named(name, body));
    }

    fn read(&mut self, piece: Piece) {
        for event in piece.events {
            if let Event::Finish(reason) = event {
                self.ending = Some(stop(reason, piece.stop.as_deref()));
            }
            for change in self.cutter.changes(event) {
                self.change(change);
            }
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Start(block) => {
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

    fn end(&mut self) {
        let usage = usage::json(self.answers.usage());
        let delta = self.ending.take();
        self.queue("message_delta", json!({ "delta": delta, "usage": usage }));
        self.queue("message_stop", json!({}));
    }
}

impl Chunks for MessageEvents {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(Some(frame));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.answers.poll_piece(context)) {
                Some(Ok((_, piece))) => self.read(piece),
                None => {
                    self.is_over = true;
                    self.end();
                }
                Some(Err(failure)) => {
                    self.is_over = true;
                    let body = MessagesError::from(failure).json();
                    self.ready.push_back(Frame::Named("error", body));
                }
            }
        }
    }
}
