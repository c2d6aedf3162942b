//! A request's body: bounded in bytes and time, then JSON.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use tokio_stream::StreamExt;

use super::error::ApiError;
use super::fields::Fields;
use super::json;
use crate::serve::options::BodyLimits;

/// How much beyond the limit is read and dropped before an answer, so that a client which sends
/// everything before it listens gets to hear the refusal.
const DROPPED_BYTES: usize = 256 << 20;

/// Reads the object that a request carries.
///
/// # Errors
/// 400 for another content type or what is not a JSON object, 408 when it takes too long, 413 when
/// it is too long.
pub(super) async fn read_object(
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
) -> Result<Fields, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(is_json) {
        let found = content_type.unwrap_or("none");
        return Err(ApiError::bad_request(format!(
            "content-type is {found}; send the body as application/json"
        )));
    }
    let bytes = tokio::time::timeout(limits.timeout, read_bytes(body, limits.bytes))
        .await
        .map_err(|_| ApiError::too_slow(seconds(limits.timeout)))??;
    match json::parse(&bytes) {
        Ok(serde_json::Value::Object(map)) => Ok(Fields::new("", map)),
        Ok(_) => Err(ApiError::bad_request("the body is not a JSON object; send one")),
        Err(error) => Err(ApiError::bad_request(format!("the body is not JSON: {error}"))),
    }
}

async fn read_bytes(body: Body, limit_bytes: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    let mut dropped_bytes = 0;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes =
            chunk.map_err(|error| ApiError::bad_request(format!("the body broke off: {error}")))?;
        if dropped_bytes > 0 || chunk.len() > limit_bytes - bytes.len() {
            dropped_bytes += chunk.len();
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(&chunk);
        }
        if dropped_bytes > DROPPED_BYTES {
            break;
        }
    }
    if dropped_bytes > 0 { Err(ApiError::too_large(limit_bytes)) } else { Ok(bytes) }
}

fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
