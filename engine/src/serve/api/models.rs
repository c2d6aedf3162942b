//! `GET /v1/models` and `GET /v1/models/NAME`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::error::ApiError;
use crate::serve::app::App;

/// The list of the one model.
pub(in crate::serve) async fn list(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({ "object": "list", "data": [model(&app)] }))
}

/// The model by its name.
pub(in crate::serve) async fn one(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
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
