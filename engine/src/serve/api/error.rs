//! Errors in OpenAI's shape.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::printable;
use crate::serve::job::Failure;
use crate::serve::record::Record;
use crate::text::{ConversationError, TextError, TokenCount};

/// An answer that is an error.
#[derive(Clone, Debug)]
pub(in crate::serve) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    /// The field concerned, as a path: `messages[0].content`.
    param: Option<String>,
    message: String,
    retry_after_seconds: Option<u64>,
    /// It refuses a request, rather than telling how an accepted one or a probe fared.
    refuses: bool,
}

/// In the extensions of an answer that is an error: its code.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct ErrorCode(pub(in crate::serve) &'static str);

/// In the extensions of an answer that refuses a request: the error's code.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct Refusal(pub(in crate::serve) &'static str);

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        Self {
            status,
            kind,
            code: None,
            param: None,
            message,
            retry_after_seconds: None,
            refuses: true,
        }
    }

    /// The same, of a request that was taken and counted, or of a probe.
    pub(in crate::serve) fn unheard(self) -> Self {
        Self { refuses: false, ..self }
    }

    /// A request that cannot be read at all.
    pub(in crate::serve) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field with a value that it cannot have.
    pub(in crate::serve) fn invalid(param: &str, problem: impl AsRef<str>) -> Self {
        let message = format!("{}: {}", printable(param), problem.as_ref());
        Self { param: Some(shortened(param.to_owned())), ..Self::bad_request(message) }
            .coded("invalid_value")
    }

    /// A field that nobody knows.
    pub(in crate::serve) fn unknown(param: &str) -> Self {
        Self::invalid(param, "unknown field; remove it").coded("unknown_parameter")
    }

    /// A field or value that is known and not supported.
    pub(in crate::serve) fn unsupported(param: &str, reason: impl AsRef<str>) -> Self {
        Self::invalid(param, reason).coded("unsupported_parameter")
    }

    /// A prompt that leaves no room for a reply.
    pub(in crate::serve) fn context_length(
        param: &str,
        prompt_tokens: TokenCount,
        context_tokens: u64,
    ) -> Self {
        let problem = format!(
            "the prompt has {prompt_tokens} and the reply needs at least 1, the context \
             holds {context_tokens}; shorten the prompt"
        );
        Self::invalid(param, problem).coded("context_length_exceeded")
    }

    /// Another model than the served one.
    pub(in crate::serve) fn model_not_found(asked: &str, served: &str) -> Self {
        let message = format!("model {asked:?} is not served here; use {served:?}");
        Self {
            param: Some("model".to_owned()),
            ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
        }
        .coded("model_not_found")
    }

    /// A request without one of the server's keys.
    pub(in crate::serve) fn no_key() -> Self {
        let message =
            "no valid API key; send one as 'Authorization: Bearer KEY' or 'x-api-key: KEY'";
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message)
            .coded("invalid_api_key")
    }

    /// No such path.
    pub(in crate::serve) fn no_such_path(path: &str) -> Self {
        let message = format!("no resource {path}; see GET /v1/models for what is served");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message).coded("not_found")
    }

    /// Another method than the path has.
    pub(in crate::serve) fn wrong_method(method: &str, path: &str) -> Self {
        let message = format!("{path} does not answer {method}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
            .coded("method_not_allowed")
    }

    /// A body over the limit.
    pub(in crate::serve) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("the body is longer than {limit_bytes} bytes; send less");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
            .coded("request_too_large")
    }

    /// A body that did not arrive in time.
    pub(in crate::serve) fn too_slow(seconds: f64) -> Self {
        let message = format!("the body did not arrive within {seconds} s; send it again");
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
            .coded("request_timeout")
    }

    /// There is too much of something that requests take.
    pub(in crate::serve) fn overloaded(problem: &str, retry_after_seconds: u64) -> Self {
        let message = format!("{problem}; send the request again in {retry_after_seconds} s");
        Self {
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
        }
        .coded("overloaded")
    }

    /// The same, of a field that another protocol calls otherwise.
    pub(super) fn renamed(mut self, from: &str, to: &str) -> Self {
        let rest = |text: &str| {
            let rest = text.strip_prefix(from)?;
            rest.starts_with(['.', '[', ':']).then(|| format!("{to}{rest}"))
        };
        if self.param.as_deref() == Some(from) {
            self.param = Some(to.to_owned());
        } else if let Some(param) = self.param.as_deref().and_then(rest) {
            self.param = Some(param);
        }
        if let Some(message) = rest(&self.message) {
            self.message = message;
        }
        self
    }

    fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong and what would work.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The answer with a body of another protocol.
    pub(super) fn respond(&self, body: impl IntoResponse) -> Response {
        let mut response = (self.status, body).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(ErrorCode(self.code()));
        if self.refuses {
            response.extensions_mut().insert(Refusal(self.code()));
        }
        response
    }

    /// The word that tells it from others.
    pub(in crate::serve) fn code(&self) -> &'static str {
        self.code.unwrap_or(self.kind)
    }

    /// The error object.
    pub(in crate::serve) fn json(&self) -> Value {
        let mut error = json!({
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        });
        if let Some(id) = Record::current_id() {
            error["request_id"] = id.into();
        }
        json!({ "error": error })
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        let param = match &failure {
            // The prompt and its pictures come from other fields in a chat than in a completion.
            Failure::Refused { argument, .. } => Some(argument.clone())
                .filter(|argument| !["prompt", "pictures"].contains(&argument.as_str())),
            _ => None,
        };
        let (status, kind, code) = match failure {
            Failure::Refused { .. } => {
                (StatusCode::BAD_REQUEST, "invalid_request_error", "refused_by_engine")
            }
            Failure::Faulted(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "server_error", "generation_failed")
            }
            Failure::DeviceLost(_) | Failure::DeviceReopening(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "server_error", "device_lost")
            }
            Failure::ShutDown => (StatusCode::SERVICE_UNAVAILABLE, "server_error", "shutting_down"),
            Failure::EngineStopped => {
                (StatusCode::SERVICE_UNAVAILABLE, "server_error", "engine_stopped")
            }
        };
        Self { param, ..Self::new(status, kind, message) }.coded(code)
    }
}

impl From<ConversationError> for ApiError {
    fn from(error: ConversationError) -> Self {
        let param = match &error {
            ConversationError::ToolChoiceWhileThinking { .. }
            | ConversationError::UnknownToolChoice { .. } => "tool_choice",
            ConversationError::JsonNotMentioned => "response_format",
            ConversationError::UnknownEffort { .. } => "reasoning_effort",
            ConversationError::Empty
            | ConversationError::PrefixNotLast { .. }
            | ConversationError::PrefixWithTools
            | ConversationError::PrefixWithJson => "messages",
        };
        Self::invalid(param, error.to_string())
    }
}

impl From<TextError> for ApiError {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Conversation(error) => error.into(),
            error => Self::from(Failure::Faulted(error.to_string())),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.respond(Json(self.json()))
    }
}

/// Characters that a long text keeps at its start and at its end. A client may send megabytes as a
/// name or a value, and need not have them back to know what was meant.
const END_CHARS: usize = 200;

/// A text without its middle when it is long; the remedy of a message stands at its end.
fn shortened(text: String) -> String {
    let mut places = text.char_indices().map(|(at, _)| at);
    let (start, end) = (places.nth(END_CHARS), places.nth_back(END_CHARS - 1));
    match start.zip(end) {
        Some((start, end)) => format!("{}…{}", &text[..start], &text[end..]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        for letter in ["a", "é", "🐳"] {
            let short = letter.repeat(2 * END_CHARS);
            assert_eq!(shortened(short.clone()), short);
            let end = letter.repeat(END_CHARS);
            for more in [1, 2, 50] {
                let long = format!("{short}{}", letter.repeat(more));
                assert_eq!(shortened(long), format!("{end}…{end}"));
            }
        }
    }
}
