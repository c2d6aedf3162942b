//! The chunks of streamed answers of OpenAI's APIs.

use std::collections::VecDeque;

use serde_json::Value;

use super::error::ApiError;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
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

/// Which chunks say how many tokens there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum StreamUsage {
    /// None.
    #[default]
    No,
    /// One after the last choice, and all others have `null`.
    Last,
    /// That and every other, of all choices up to there.
    Each,
}

/// Answers as a stream of chunks.
pub(super) struct AnswerChunks<S> {
    stamp: Stamp,
    usage: StreamUsage,
    spelling: S,
    ready: VecDeque<Frame>,
}

impl<S: Spelling> AnswerChunks<S> {
    /// A stream that starts with these choices.
    pub(super) fn new(
        stamp: Stamp,
        (usage, answers): (StreamUsage, &Answers),
        spelling: S,
        first: impl IntoIterator<Item = Value>,
    ) -> Self {
        let mut chunks = Self { stamp, usage, spelling, ready: VecDeque::new() };
        chunks.queue_all(first, answers);
        chunks
    }

    /// A chunk for each choice.
    fn queue_all(&mut self, choices: impl IntoIterator<Item = Value>, answers: &Answers) {
        for choice in choices {
            let usage = match self.usage {
                StreamUsage::Each => answers.usage().json(),
                StreamUsage::No | StreamUsage::Last => Value::Null,
            };
            self.queue(vec![choice], usage);
        }
    }

    fn queue(&mut self, choices: Vec<Value>, usage: Value) {
        let mut body = self.stamp.json(S::OBJECT);
        body.insert("choices".to_owned(), choices.into());
        if self.usage != StreamUsage::No {
            body.insert("usage".to_owned(), usage);
        }
        self.ready.push_back(Frame::Data(body.into()));
    }
}

impl<S: Spelling> Chunks for AnswerChunks<S> {
    fn write(&mut self, place: usize, piece: Piece, answers: &Answers) {
        let choices = self.spelling.choices(place, piece);
        self.queue_all(choices, answers);
    }

    fn end(&mut self, usage: Usage) {
        if self.usage != StreamUsage::No {
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
