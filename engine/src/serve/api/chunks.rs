//! The chunks of streamed answers, whatever the API.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use serde_json::Value;

use super::error::ApiError;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
use crate::serve::sse::{Chunks, Frame};
use crate::serve::stamp::Stamp;

/// How an API spells a piece of an answer.
pub(super) trait Spelling: Send + Unpin + 'static {
    /// The kind of object a chunk is.
    const OBJECT: &str;

    /// The piece of the answer at `place` as choices, each of which becomes a chunk of its own.
    fn choices(&mut self, place: usize, piece: Piece) -> Vec<Value>;
}

/// Answers as a stream of chunks.
pub(super) struct AnswerChunks<S> {
    answers: Answers,
    stamp: Stamp,
    include_usage: bool,
    spelling: S,
    ready: VecDeque<Frame>,
    is_over: bool,
}

impl<S: Spelling> AnswerChunks<S> {
    /// A stream that starts with these choices.
    pub(super) fn new(
        answers: Answers,
        stamp: Stamp,
        include_usage: bool,
        spelling: S,
        first: impl IntoIterator<Item = Value>,
    ) -> Self {
        let (ready, is_over) = (VecDeque::new(), false);
        let mut chunks = Self { answers, stamp, include_usage, spelling, ready, is_over };
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

    /// Queues what follows the last choice.
    fn queue_end(&mut self) {
        if self.include_usage {
            let usage = self.answers.usage().json();
            self.queue(Vec::new(), usage);
        }
        self.ready.push_back(Frame::Done);
    }
}

impl<S: Spelling> Chunks for AnswerChunks<S> {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(Some(frame));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.answers.poll_piece(context)) {
                Some(Ok((place, piece))) => {
                    for choice in self.spelling.choices(place, piece) {
                        self.queue(vec![choice], Value::Null);
                    }
                }
                None => {
                    self.is_over = true;
                    self.queue_end();
                }
                Some(Err(failure)) => {
                    self.is_over = true;
                    self.ready.push_back(Frame::Data(ApiError::from(failure).json()));
                }
            }
        }
    }
}
