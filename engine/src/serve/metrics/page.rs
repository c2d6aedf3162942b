//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

use crate::serve::api::error::ApiError;
use crate::serve::app::App;
use crate::serve::job::Failure;

/// All metrics, of a server that shuts down or whose engine has stopped too.
pub(in crate::serve) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let page = app.engine.meters().page();
    let page = page.map_err(|error| Failure::Faulted(format!("metrics: {error}")))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response())
}
