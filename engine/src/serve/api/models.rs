//! `GET /v1/models` and `GET /v1/models/NAME`.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde_json::{Value, json};

use super::error::ApiError;
use crate::serve::app::App;

/// The list of the one model.
pub(in crate::serve) async fn list(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({ "object": "list", "data": [model(&app)] }))
}

/// The model by its name. One that is no text is none.
pub(in crate::serve) async fn one(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let Ok(Path(name)) = name else { return Err(ApiError::no_such_path(uri.path())) };
    app.check_model(Some(&name))?;
    Ok(Json(model(&app)))
}

fn model(app: &App) -> Value {
    let limits = app.engine.limits();
    let modalities = if limits.pictures { json!(["text", "image"]) } else { json!(["text"]) };
    json!({
        "id": app.options.served_model_name,
        "object": "model",
        "created": app.created,
        "owned_by": "tandem",
        "max_model_len": limits.context_tokens,
        "input_modalities": modalities,
    })
}
