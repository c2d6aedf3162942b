//! `GET /health` and `GET /ready`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::api::error::ApiError;
use super::app::App;
use super::job::Failure;

/// 200 with what the engine is busy with, as long as its thread lives, so also while the server drains; 503 after: then
/// only a restart helps.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    if !app.engine.is_alive() {
        return Err(ApiError::from(Failure::EngineStopped).unheard());
    }
    let load = app.engine.load();
    Ok(Json(json!({
        "status": "ok",
        "requests_under_way": app.admission.under_way(),
        "prompt_tokens_waiting": app.admission.waiting_tokens(),
        "running": load.running,
        "waiting": load.waiting,
        "free_pages": load.free_pages,
    })))
}

/// 200 while new work is taken, 503 otherwise: then requests belong elsewhere. A server answers at all
/// when its weights are loaded and its steps captured, so it is ready from its first answer on.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.check_open().map_err(ApiError::unheard)?;
    Ok(Json(json!({ "status": "ready" })))
}
