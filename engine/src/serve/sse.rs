//! Server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio_stream::Stream;

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

/// What a stream consists of.
pub(super) trait Chunks: Send + Unpin + 'static {
    /// The next frame; `None` ends the stream.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>>;
}

struct Events<C>(C);

impl<C: Chunks> Stream for Events<C> {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_frame(context).map(|frame| {
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
pub(super) fn respond(chunks: impl Chunks, ping_interval: Duration) -> Response {
    let ping = KeepAlive::new().interval(ping_interval).text("ping");
    Sse::new(Events(chunks)).keep_alive(ping).into_response()
}
