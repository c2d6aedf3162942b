//! What is told of a request: an id, which its answer names, and one line in the log when all is over. The line has counts
//! and times; prompts, answers and keys never.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::api::error::ErrorCode;
use super::page;
use super::random::random;
use super::usage::Usage;

/// Names the request, in either direction.
const ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The same in Anthropic's protocol.
const MESSAGES_ID_HEADER: HeaderName = HeaderName::from_static("request-id");
/// Longest id that is taken from a client.
const MOST_ID_BYTES: usize = 128;
/// Longest path that is told.
const MOST_PATH_CHARS: usize = 128;
/// Paths that are asked all the time, by machines.
const PROBES: [&str; 3] = ["/health", "/ready", "/metrics"];

tokio::task_local! {
    /// The request that the task works on.
    static CURRENT: Arc<Record>;
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Record {
    id: String,
    begun: Instant,
    told: Mutex<Told>,
}

/// What is known of it so far.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    usage: Usage,
    first_token: Option<Duration>,
    error: Option<&'static str>,
}

impl Record {
    /// Of the request that this task works on, if it is one that came over a connection.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// The id of that request.
    pub(super) fn current_id() -> Option<String> {
        CURRENT.try_with(|record| record.id.clone()).ok()
    }

    /// The first token came.
    pub(super) fn first_token(&self) {
        let since = self.begun.elapsed();
        self.told().first_token.get_or_insert(since);
    }

    /// What the replies add up to.
    pub(super) fn count(&self, usage: Usage) {
        self.told().usage = usage;
    }

    /// The answer is or ends with an error.
    pub(super) fn failed(&self, code: &'static str) {
        self.told().error = Some(code);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id that a client gave a request, if it is one that can be told again, or a new one.
fn id(headers: &HeaderMap) -> String {
    let is_plain = |id: &&str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        (1..=MOST_ID_BYTES).contains(&id.len()) && id.bytes().all(known)
    };
    let given = headers.get(ID_HEADER).and_then(|value| value.to_str().ok()).filter(is_plain);
    given.map_or_else(|| format!("req_{:016x}{:016x}", random(), random()), str::to_owned)
}

/// Gives a request its id and has it told when its answer is over.
pub(super) async fn keep_record(request: Request, next: Next) -> Response {
    let id = id(request.headers());
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0);
    let record = Arc::new(Record { id, begun: Instant::now(), told: Mutex::default() });
    let mut line = Line {
        record: Arc::clone(&record),
        peer,
        method: request.method().clone(),
        path: request.uri().path().chars().take(MOST_PATH_CHARS).collect(),
        status: None,
        is_whole: false,
    };
    let is_messages = line.path.starts_with("/v1/messages");
    let mut response = CURRENT.scope(Arc::clone(&record), next.run(request)).await;
    if let Some(ErrorCode(code)) = response.extensions().get() {
        record.failed(code);
    }
    line.status = Some(response.status());
    if let Ok(id) = HeaderValue::from_str(&record.id) {
        if is_messages {
            response.headers_mut().insert(MESSAGES_ID_HEADER, id.clone());
        }
        response.headers_mut().insert(ID_HEADER, id);
    }
    response.map(|body| Body::new(Recorded { body, line }))
}

/// An answer's body, of which the end is told.
struct Recorded {
    // Before the line, so that what it holds is counted when that is told.
    body: Body,
    line: Line,
}

impl hyper::body::Body for Recorded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, line } = &mut *self;
        let record = Arc::clone(&line.record);
        let polled = CURRENT.sync_scope(record, || Pin::new(&mut *body).poll_frame(context));
        let frame = ready!(polled);
        line.is_whole |= frame.is_none() || body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The line of a request, told when it is dropped: then the answer is sent, or nobody takes it.
struct Line {
    record: Arc<Record>,
    peer: Option<SocketAddr>,
    method: Method,
    path: String,
    status: Option<StatusCode>,
    is_whole: bool,
}

impl Drop for Line {
    fn drop(&mut self) {
        let Self { record, peer, method, path, status, .. } = self;
        let Told { usage, first_token, error } = *record.told();
        let ms = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
        let (id, took_ms) = (record.id.as_str(), ms(record.begun.elapsed()));
        let status = status.map(|status| status.as_u16());
        let peer = peer.map(tracing::field::display);
        let reads_no_body = *method == Method::HEAD || status.is_some_and(|status| status == 304);
        let client = (!self.is_whole && !reads_no_body).then_some("hung up");
        macro_rules! tell {
            ($level:expr) => {
                tracing::event!(
                    target: "tandem::request", $level, request_id = id, peer, method = method.as_str(),
                    path = path.as_str(), status, error, client, prompt_tokens = usage.prompt_tokens,
                    cached_tokens = usage.cached_tokens, output_tokens = usage.completion_tokens,
                    first_token_ms = first_token.map(ms), ms = took_ms, "request"
                )
            };
        }
        let is_quiet = PROBES.contains(&path.as_str()) || page::is_part(path);
        match status {
            Some(500..) => tell!(tracing::Level::WARN),
            Some(..400) if is_quiet => tell!(tracing::Level::DEBUG),
            _ => tell!(tracing::Level::INFO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_clients_if_it_is_a_plain_word() {
        let of = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ID_HEADER, HeaderValue::from_bytes(given.as_bytes()).unwrap());
            id(&headers)
        };
        assert_eq!(of("a-1_b.c:d"), "a-1_b.c:d");
        for odd in ["", "a b", "a\"b", "é", &"x".repeat(MOST_ID_BYTES + 1)] {
            assert!(of(odd).starts_with("req_"), "{odd}");
        }
        assert_ne!(id(&HeaderMap::new()), id(&HeaderMap::new()));
    }
}
