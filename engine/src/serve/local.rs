//! The server's routes without a connection: requests are checked and answered exactly as those that come over the network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use super::app::{App, ServedModel};
use super::mailbox::EngineHandle;
use super::options::ServerOptions;
use super::server::router;
use crate::{Error, Result};

/// One model on one engine, for this process alone.
pub struct Local {
    runtime: Runtime,
    routes: Routes,
    engine: EngineHandle,
    /// Replies that may be under way at once without one's being refused.
    pub(super) at_once: usize,
}

/// What answers, for a task of the runtime.
#[derive(Clone)]
pub(super) struct Routes(Router);

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct LocalReply {
    status: StatusCode,
    body: String,
}

impl Local {
    /// A model on an engine. The options tell the model's name and the bounds of requests.
    ///
    /// # Errors
    /// [`Error::Io`] when the system gives no threads.
    pub fn new(engine: EngineHandle, model: ServedModel, options: ServerOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let path = || "the server".to_owned();
        let runtime =
            runtime.map_err(|source| Error::Io { action: "start", path: path(), source })?;
        let app = Arc::new(App::new(engine.clone(), model, options));
        let at_once = engine.limits().max_sequences.saturating_mul(2);
        let at_once = at_once.min(app.admission.total()) as usize;
        Ok(Self { runtime, routes: Routes(router(app)), engine, at_once })
    }

    /// The answer to a body that is posted to a path.
    pub fn post(&self, path: &str, body: &Value) -> LocalReply {
        self.runtime.block_on(self.routes.post(path, &body.to_string()))
    }

    /// Why the engine ended.
    pub(super) fn fault(&self) -> Error {
        let invariant = "the engine's thread ends after its last request".to_owned();
        self.engine.take_fault().unwrap_or(Error::Internal { invariant })
    }

    pub(super) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Runs a future to its end.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

impl Routes {
    pub(super) async fn post(&self, path: &str, body: &str) -> LocalReply {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(ConnectInfo(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
            .body(Body::from(body.to_owned()))
            .expect("paths of this program are paths of HTTP");
        let answered = self.0.clone().oneshot(request).await;
        let response: Response = answered.unwrap_or_else(|never| match never {});
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        LocalReply { status, body: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

impl LocalReply {
    /// The status as HTTP counts it.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body of an answer that is not streamed.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The objects of a streamed answer; `None` unless it ends as a complete one does.
    pub fn events(&self) -> Option<Vec<Value>> {
        let mut lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let whole = lines.next_back() == Some("[DONE]");
        whole.then(|| lines.filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
