//! A request's body: bounded in bytes and time, then JSON, then what a handler prepares of it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use tokio_stream::StreamExt;

use super::error::ApiError;
use super::fields::Fields;
use super::json;
use crate::serve::app::App;
use crate::serve::body_room::HeldRoom;
use crate::serve::caller::Caller;
use crate::serve::job::Failure;

/// How much of a body that is refused is read and dropped before the answer, so that a client which
/// sends everything before it listens gets to hear the refusal.
const DROPPED_BYTES: usize = 256 << 20;

/// Reads the object that a request carries and prepares the request from it, away from the tasks of
/// the runtime; large ones one at a time. The room that the body takes is held until then.
///
/// # Errors
/// Those of `prepare`; 400 for another content type or encoding or what is not a JSON object, 408 when it
/// takes too long, 413 when it is too long, 429 when the bodies of other requests take all the memory
/// there is for them, 503 when the server is to stop before it is all there.
pub(super) async fn read_object<T: Send + 'static>(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Body,
    prepare: impl FnOnce(&App, Fields, &Caller) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(is_json) {
        let found = content_type.unwrap_or("none");
        return Err(ApiError::bad_request(format!(
            "content-type is {found}; send the body as application/json"
        )));
    }
    let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::bad_request("content-encoding is not supported; send plain JSON"));
    }
    let (timeout, limit_bytes) = (app.options.body.timeout, app.options.body.bytes);
    let is_too_large = announced(headers).is_some_and(|bytes| bytes > limit_bytes as u64);
    if is_too_large && waits(headers) {
        return Err(ApiError::too_large(limit_bytes));
    }
    let arrival = async {
        tokio::select! {
            read = tokio::time::timeout(timeout, read_bytes(app, body)) => read,
            () = app.closed() => Ok(Err(Failure::ShutDown.into())),
        }
    };
    let (bytes, room) = arrival.await.map_err(|_| match is_too_large {
        true => ApiError::too_large(limit_bytes),
        false => ApiError::too_slow(timeout.as_secs_f64()),
    })??;
    let (body_bytes, shared) = (bytes.len(), Arc::clone(app));
    let work = move |caller: &Caller| {
        let _room = room;
        let fields = parse_object(&bytes)?;
        drop(bytes);
        prepare(&shared, fields, caller)
    };
    app.large_bodies.run(body_bytes, work).await
}

/// Bytes that the body is to have.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether a client hears a refusal before it has sent its body: it waits to be asked for it, or will
/// have more to send than is read.
fn waits(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
        || announced(headers).is_some_and(|bytes| bytes > DROPPED_BYTES as u64)
}

/// The fields of a body.
fn parse_object(bytes: &[u8]) -> Result<Fields, ApiError> {
    match json::parse(bytes) {
        Ok(serde_json::Value::Object(map)) => Ok(Fields::new("", map)),
        Ok(_) => Err(ApiError::bad_request("the body is not a JSON object; send one")),
        Err(error) => Err(ApiError::bad_request(format!("the body is not JSON: {error}"))),
    }
}

async fn read_bytes(app: &App, body: Body) -> Result<(Vec<u8>, HeldRoom), ApiError> {
    let limit_bytes = app.options.body.bytes;
    let mut read = Ok((Vec::new(), app.bodies.body()));
    let mut dropped_bytes = 0;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes =
            chunk.map_err(|error| ApiError::bad_request(format!("the body broke off: {error}")))?;
        if let Ok((bytes, room)) = &mut read {
            // Forgets what was read, and gives its room back.
            if chunk.len() > limit_bytes - bytes.len() {
                read = Err(ApiError::too_large(limit_bytes));
            } else if !room.grow_to(bytes.len() + chunk.len()) {
                read = Err(app.overloaded());
            } else {
                bytes.extend_from_slice(&chunk);
                continue;
            }
        }
        dropped_bytes += chunk.len();
        if dropped_bytes > DROPPED_BYTES {
            break;
        }
    }
    read
}

fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}
