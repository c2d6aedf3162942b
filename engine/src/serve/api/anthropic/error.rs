//! Errors in Anthropic's shape.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::serve::api::error::ApiError;
use crate::serve::job::Failure;
use crate::serve::record::Record;

/// An answer that is an error.
#[derive(Clone, Debug)]
pub(in crate::serve) struct MessagesError(ApiError);

impl MessagesError {
    /// The error object.
    pub(super) fn json(&self) -> Value {
        let kind = match self.0.status() {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::REQUEST_TIMEOUT => "timeout_error",
            StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "api_error",
        };
        let error = json!({ "type": kind, "message": self.0.message() });
        match Record::current_id() {
            Some(id) => json!({ "type": "error", "error": error, "request_id": id }),
            None => json!({ "type": "error", "error": error }),
        }
    }
}

impl From<ApiError> for MessagesError {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<Failure> for MessagesError {
    fn from(failure: Failure) -> Self {
        Self(failure.into())
    }
}

impl IntoResponse for MessagesError {
    fn into_response(self) -> Response {
        self.0.respond(Json(self.json()))
    }
}
