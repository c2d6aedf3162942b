//! Server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio_stream::Stream;

use super::answer::Piece;
use super::answers::Answers;
use super::job::Failure;
use super::usage::Usage;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// A JSON object on one line.
    Data(Value),
    /// The same, with the event's name before it.
    Named(&'static str, Value),
    /// The reply is complete. A stream that fails ends with an error object and without this.
    Done,
}

/// How an API writes streamed answers. What it has written waits to be taken.
pub(super) trait Chunks: Send + Unpin + 'static {
    /// Writes a piece of the answer at `place`; `answers` says how much there is with it.
    fn write(&mut self, place: usize, piece: Piece, answers: &Answers);

    /// Writes what follows the last piece.
    fn end(&mut self, usage: Usage);

    /// Writes why there is no more.
    fn fail(&mut self, failure: Failure);

    /// Takes the next frame.
    fn take(&mut self) -> Option<Frame>;
}

/// Answers as a stream of frames.
struct Frames<C> {
    answers: Answers,
    chunks: C,
    is_over: bool,
}

impl<C: Chunks> Frames<C> {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = self.chunks.take() {
                return Poll::Ready(Some(frame));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.answers.poll_piece(context)) {
                Some(Ok((place, piece))) => self.chunks.write(place, piece, &self.answers),
                None => {
                    self.is_over = true;
                    self.chunks.end(self.answers.usage());
                }
                Some(Err(failure)) => {
                    self.is_over = true;
                    self.chunks.fail(failure);
                }
            }
        }
    }
}

impl<C: Chunks> Stream for Frames<C> {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_frame(context).map(|frame| {
            frame.map(|frame| {
                Ok(match frame {
                    // JSON text has no line ends, which an event could not carry.
                    Frame::Data(value) => Event::default().data(value.to_string()),
                    Frame::Named(name, value) => {
                        Event::default().event(name).data(value.to_string())
                    }
                    Frame::Done => Event::default().data("[DONE]"),
                })
            })
        })
    }
}

/// A response that sends the chunks as they come, and a comment whenever nothing came for
/// `ping_interval`: a long prefill is silent, and clients and proxies give up on silence.
pub(super) fn respond(answers: Answers, chunks: impl Chunks, ping_interval: Duration) -> Response {
    let ping = KeepAlive::new().interval(ping_interval).text("ping");
    Sse::new(Frames { answers, chunks, is_over: false }).keep_alive(ping).into_response()
}
