//! The chunks of streamed answers of OpenAI's APIs.

use std::collections::VecDeque;

use serde_json::Value;

use super::error::ApiError;
use crate::serve::answer::Piece;
use crate::serve::job::Failure;
use crate::serve::sse::{Chunks, Frame};
use crate::serve::stamp::Stamp;
use crate::serve::usage::Usage;

/// How an API spells a piece of an answer.
pub(super) trait Spelling: Send + Unpin + 'static {
    /// The kind of object a chunk is.
    const OBJECT: &str;

    /// The piece of the answer at `place` as choices, each of which becomes a chunk of its own.
    fn choices(&mut self, place: usize, piece: Piece) -> Vec<Value>;
}

/// Answers as a stream of chunks.
pub(super) struct AnswerChunks<S> {
    stamp: Stamp,
    include_usage: bool,
    spelling: S,
    ready: VecDeque<Frame>,
}

impl<S: Spelling> AnswerChunks<S> {
    /// A stream that starts with these choices.
    pub(super) fn new(
        stamp: Stamp,
        include_usage: bool,
        spelling: S,
        first: impl IntoIterator<Item = Value>,
    ) -> Self {
        let mut chunks = Self { stamp, include_usage, spelling, ready: VecDeque::new() };
        for choice in first {
            chunks.queue(vec![choice], Value::Null);
        }
        chunks
    }

    fn queue(&mut self, choices: Vec<Value>, usage: Value) {
        let mut body = self.stamp.json(S::OBJECT);
        body.insert("choices".to_owned(), choices.into());
        if self.include_usage {
            body.insert("usage".to_owned(), usage);
        }
        self.ready.push_back(Frame::Data(body.into()));
    }
}

impl<S: Spelling> Chunks for AnswerChunks<S> {
    fn write(&mut self, place: usize, piece: Piece) {
        for choice in self.spelling.choices(place, piece) {
            self.queue(vec![choice], Value::Null);
        }
    }

    fn end(&mut self, usage: Usage) {
        if self.include_usage {
            self.queue(Vec::new(), usage.json());
        }
        self.ready.push_back(Frame::Done);
    }

    fn fail(&mut self, failure: Failure) {
        self.ready.push_back(Frame::Data(ApiError::from(failure).json()));
    }

    fn take(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }
}
