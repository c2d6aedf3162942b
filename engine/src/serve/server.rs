//! The server: routes, and a life from the first connection to the last.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state, map_response_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use super::api::anthropic::messages;
use super::api::error::{ApiError, Refusal};
use super::api::responses::create;
use super::api::{chat, completions, models, tokens};
use super::api_keys::check_key;
use super::app::{App, ServedModel};
use super::connections;
use super::health::{health, ready};
use super::mailbox::EngineHandle;
use super::metrics::metrics;
use super::options::ServerOptions;
use super::page;
use super::record::keep_record;
use super::signal::{reload_at_hangup, stop_signal};
use crate::{Error, Result};

/// How long connections may take to send what is left after their replies are over.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// A server that is ready to run.
pub struct Server {
    app: Arc<App>,
}

impl Server {
    /// A server of one model on one engine.
    pub fn new(engine: EngineHandle, model: ServedModel, options: ServerOptions) -> Self {
        Self { app: Arc::new(App::new(engine, model, options)) }
    }

    /// Serves until the process is asked to stop by SIGTERM or SIGINT, and drains; see
    /// [`Server::run`].
    ///
    /// # Errors
    /// Those of [`Server::run`], and [`Error::Io`] when the system gives no threads or signals.
    pub fn run_until_signal(self, listener: std::net::TcpListener) -> Result<()> {
        let io = |action, source| Error::Io { action, path: "the server".to_owned(), source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|source| io("start", source))?;
        let served = runtime.block_on(async {
            listener.set_nonblocking(true).map_err(|source| io("start", source))?;
            let listener = TcpListener::from_std(listener).map_err(|source| io("start", source))?;
            reload_at_hangup(self.app.options.tls.clone())?;
            self.run(listener, stop_signal()?).await
        });
        // Tokenising a prompt that nobody waits for any longer holds nothing up.
        runtime.shutdown_background();
        served
    }

    /// Serves until `shutdown` and then drains: new requests are answered 503, those under way go
    /// on for at most the drain timeout and then fail with an error that says so.
    ///
    /// # Errors
    /// [`Error::Io`] when the listener fails. When the engine cannot go on, requests are failed and
    /// new ones refused while those under way are told, and this ends with what was wrong with it:
    /// [`Error::Device`] when the device is lost, [`Error::Internal`] when its thread panicked.
    pub async fn run(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let app = Arc::clone(&self.app);
        let (closing, mut closed) = tokio::sync::watch::channel(());
        let close = async move {
            tokio::select! {
                () = shutdown => {}
                () = app.engine.stopped() => {}
            }
            drain(&app).await;
            drop(closing);
        };
        let limits = self.app.options.connections;
        let tls = self.app.options.tls.clone();
        let routes = router(Arc::clone(&self.app)).layer(from_fn(keep_record));
        let serving = connections::serve(listener, routes, limits, tls, close);
        let late = async move {
            while closed.changed().await.is_ok() {}
            tokio::time::sleep(LAST_WRITES).await;
        };
        tokio::select! {
            served = serving => {
                let at = || "connections".to_owned();
                served.map_err(|source| Error::Io { action: "accept", path: at(), source })?;
            }
            () = late => {}
        }
        if self.app.engine.is_alive() {
            self.app.engine.save().await;
        }
        if self.app.engine.is_alive() {
            return Ok(());
        }
        let panicked = "the engine's thread ends after the server".to_owned();
        Err(self.app.engine.take_fault().unwrap_or(Error::Internal { invariant: panicked }))
    }
}

/// Takes no more work and waits until all that is under way is over, one way or the other.
async fn drain(app: &App) {
    app.close();
    tracing::info!(under_way = app.admission.under_way(), "taking no more requests");
    let in_time = tokio::time::timeout(app.options.drain_timeout, app.admission.drained()).await;
    if in_time.is_err() {
        tracing::warn!(under_way = app.admission.under_way(), "the time to drain is over");
        app.engine.abort();
        // The last to leave are replies that a client does not take.
        let _ = tokio::time::timeout(LAST_WRITES, app.admission.drained()).await;
    }
}

/// What answers the requests of a model.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/page/{name}", get(page::file))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*name}", get(models::one))
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/completions", post(completions::answer))
        .route("/v1/responses", post(create::answer))
        .route("/v1/messages", post(messages::answer))
        .route("/v1/messages/count_tokens", post(messages::count))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/render", post(tokens::render))
        .route("/version", get(tokens::version))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), check_key))
        .layer(map_response_with_state(Arc::clone(&app), count_refusal))
        .with_state(app)
}

/// Counts answers that refuse a request.
async fn count_refusal(State(app): State<Arc<App>>, response: Response) -> Response {
    if let Some(Refusal(reason)) = response.extensions().get() {
        app.engine.meters().rejected(reason);
    }
    response
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::no_such_path(uri.path())
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::wrong_method(method.as_str(), uri.path())
}
