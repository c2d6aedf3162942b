//! The replies to one request: several to one prompt, or to several.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::answer::{Answer, Piece};
use super::api::error::ApiError;
use super::job::Failure;
use super::record::Record;
use super::usage::Usage;

/// Replies under way, by their places among the choices: those to the first prompt come first.
pub(super) struct Answers {
    answers: Vec<Answer>,
    /// Replies to each prompt.
    replies: usize,
    /// Who is asked first, so that all get on alike.
    first: usize,
    /// What is told of the request.
    record: Option<Arc<Record>>,
}

impl Answers {
    /// Of `replies` replies to each prompt.
    pub(super) fn new(answers: Vec<Answer>, replies: usize) -> Self {
        Self { answers, replies, first: 0, record: Record::current() }
    }

    /// Choices.
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    /// Returns when the engine has taken all of them.
    ///
    /// # Errors
    /// Why it did not; none of them is counted then.
    pub(super) async fn accepted(&mut self) -> Result<(), Failure> {
        for place in 0..self.answers.len() {
            if let Err(failure) = self.answers[place].accepted().await {
                self.answers.iter_mut().for_each(Answer::forget);
                return Err(failure);
            }
        }
        Ok(())
    }

    /// The next piece of any of them and its place; `None` when all are over. A failure ends all.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(usize, Piece), Failure>>> {
        let count = self.answers.len();
        let mut is_over = true;
        for place in (self.first..count).chain(0..self.first) {
            match self.answers[place].poll_piece(context) {
                Poll::Ready(Some(piece)) => {
                    self.first = (place + 1) % count;
                    self.note(&piece);
                    return Poll::Ready(Some(piece.map(|piece| (place, piece))));
                }
                Poll::Ready(None) => {}
                Poll::Pending => is_over = false,
            }
        }
        if is_over { Poll::Ready(None) } else { Poll::Pending }
    }

    /// As [`Answers::poll_piece`], waiting; a failure is the error to answer with.
    pub(super) async fn piece(&mut self) -> Option<Result<(usize, Piece), ApiError>> {
        let piece = std::future::poll_fn(|context| self.poll_piece(context)).await;
        piece.map(|piece| piece.map_err(|failure| ApiError::from(failure).unheard()))
    }

    fn note(&self, piece: &Result<Piece, Failure>) {
        match (&self.record, piece) {
            (Some(record), Ok(piece)) if piece.token.is_some() => record.first_token(),
            (Some(record), Err(failure)) => record.failed(ApiError::from(failure.clone()).code()),
            _ => {}
        }
    }

    /// Counts of all; a prompt counts once however many replies it gets.
    pub(super) fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for (place, answer) in self.answers.iter().enumerate() {
            let usage = answer.usage();
            sum.completion_tokens += usage.completion_tokens;
            sum.reasoning_tokens += usage.reasoning_tokens;
            sum.bounded_replay |= usage.bounded_replay;
            sum.accepted_drafts += usage.accepted_drafts;
            sum.rejected_drafts += usage.rejected_drafts;
            if place % self.replies == 0 {
                sum.prompt_tokens += usage.prompt_tokens;
                sum.cached_tokens += usage.cached_tokens;
            }
        }
        sum
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(record) = &self.record {
            record.count(self.usage());
        }
    }
}
