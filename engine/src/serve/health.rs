//! `GET /health`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::api::error::ApiError;
use super::app::App;

/// 200 with what the engine is busy with; 503 when new work is not taken.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.check_open()?;
    let load = app.engine.load();
    Ok(Json(json!({
        "status": "ok",
        "requests_under_way": app.admission.under_way(),
        "running": load.running,
        "waiting": load.waiting,
        "free_pages": load.free_pages,
    })))
}
