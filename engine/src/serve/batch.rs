//! Requests of a file, in OpenAI's batch form, answered as the server would, without a network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::app::{App, ServedModel};
use super::mailbox::EngineHandle;
use super::options::ServerOptions;
use super::random::random;
use super::server::router;
use crate::error::printable;
use crate::{Error, Result};

/// What a batch may ask.
const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/completions", "/v1/responses"];
/// How long a request waits that found no room.
const ROOM_INTERVAL: Duration = Duration::from_millis(20);

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    custom_id: String,
    path: &'static str,
    body: String,
}

impl BatchRequest {
    /// A line of a file: `{"custom_id": …, "method": "POST", "url": …, "body": {…}}`.
    ///
    /// # Errors
    /// What is wrong with the line, and what would be right. The body's fields are the server's to check.
    pub fn parse(line: &str) -> std::result::Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let fields = value.as_object().ok_or("not an object; write one a line")?;
        let known = ["custom_id", "method", "url", "body"];
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("{}: unknown field; remove it", printable(key)));
        }
        let text = |key: &str| {
            let value = fields.get(key).and_then(Value::as_str);
            value.ok_or_else(|| format!("{key}: must be a text"))
        };
        let custom_id = text("custom_id")?.to_owned();
        let (method, url) = (text("method")?, text("url")?);
        if method != "POST" {
            return Err(format!("method: {} is not POST", printable(method)));
        }
        let path = PATHS.into_iter().find(|path| *path == url).ok_or_else(|| {
            format!("url: {} is not of a batch; {} are", printable(url), PATHS.join(", "))
        })?;
        let body = fields.get("body").filter(|body| body.is_object());
        let body = body.ok_or("body: must be an object")?;
        if body["stream"] == true {
            return Err("body.stream: a batch is not streamed; leave it out".to_owned());
        }
        Ok(Self { custom_id, path, body: body.to_string() })
    }

    /// What tells the request from the others.
    pub fn custom_id(&self) -> &str {
        &self.custom_id
    }

    fn request(&self) -> Request<Body> {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Request::post(self.path)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(ConnectInfo(peer))
            .body(Body::from(self.body.clone()))
            .expect("a path of ours is one of HTTP")
    }

    /// The line that tells the answer.
    fn line(&self, status: StatusCode, body: &Value) -> String {
        json!({
            "id": format!("batch_req_{:016x}{:016x}", random(), random()),
            "custom_id": self.custom_id,
            "response": { "status_code": status.as_u16(), "body": body },
            "error": null,
        })
        .to_string()
    }
}

/// One model on one engine, for a file of requests.
pub struct Batch {
    app: Arc<App>,
}

impl Batch {
    /// A batch on an engine. The options tell the model's name and the bounds of requests.
    pub fn new(engine: EngineHandle, model: ServedModel, options: ServerOptions) -> Self {
        Self { app: Arc::new(App::new(engine, model, options)) }
    }

    /// Answers all requests, twice as many at a time as the engine runs; `answered` is given a line for each, as they are
    /// done. A request that is refused has a line that says why, and holds nobody up.
    ///
    /// # Errors
    /// What `answered` returns, which ends the batch; [`Error::Io`] when the system gives no threads; when the engine cannot
    /// go on, what was wrong with it, [`Error::Internal`] when its thread panicked.
    pub fn run(
        self,
        requests: Vec<BatchRequest>,
        mut answered: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let path = || "the batch".to_owned();
        let runtime =
            runtime.map_err(|source| Error::Io { action: "start", path: path(), source })?;
        let at_once = self.app.engine.limits().max_sequences.saturating_mul(2);
        let at_once = at_once.min(self.app.admission.total()) as usize;
        let router = router(Arc::clone(&self.app));
        let ended = runtime.block_on(async {
            let (mut requests, mut under_way) = (requests.into_iter(), JoinSet::new());
            loop {
                while under_way.len() < at_once {
                    let Some(request) = requests.next() else { break };
                    under_way.spawn(answer(router.clone(), request));
                }
                let Some(line) = under_way.join_next().await else { return Ok(()) };
                let invariant = || "the engine's thread ends after the batch".to_owned();
                let fault = || self.app.engine.take_fault();
                let fault = || fault().unwrap_or(Error::Internal { invariant: invariant() });
                let line = line.expect("handlers do not panic");
                answered(&line.ok_or_else(fault)?)?;
            }
        });
        runtime.shutdown_background();
        ended
    }
}

/// The line of one request; `None` when the engine is gone.
async fn answer(router: Router, request: BatchRequest) -> Option<String> {
    loop {
        let answered = router.clone().oneshot(request.request()).await;
        let response: Response = answered.unwrap_or_else(|never| match never {});
        let status = response.status();
        match status {
            StatusCode::TOO_MANY_REQUESTS => {
                tokio::time::sleep(ROOM_INTERVAL).await;
                continue;
            }
            StatusCode::SERVICE_UNAVAILABLE => return None,
            _ => {}
        }
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        return Some(request.line(status, &body));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_requests_say_why() {
        let line = |id: &str, method: &str, url: &str, body: Value| {
            json!({ "custom_id": id, "method": method, "url": url, "body": body }).to_string()
        };
        let chat = PATHS[0];
        assert_eq!(
            BatchRequest::parse(&line("a", "POST", chat, json!({}))).unwrap().custom_id(),
            "a"
        );
        for (line, part) in [
            ("{".to_owned(), "JSON"),
            ("[]".to_owned(), "object"),
            (r#"{"custom_id": 3}"#.to_owned(), "custom_id"),
            (r#"{"colour": 3}"#.to_owned(), "colour"),
            (line("a", "GET", chat, json!({})), "POST"),
            (line("a", "POST", "/v1/models", json!({})), "/v1/completions"),
            (line("a", "POST", chat, json!([])), "body"),
            (line("a", "POST", chat, json!({ "stream": true })), "stream"),
        ] {
            let problem = BatchRequest::parse(&line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
