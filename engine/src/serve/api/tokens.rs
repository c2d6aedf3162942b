//! `POST /tokenize`, `POST /detokenize`, `POST /render` and `GET /version`: what settles disputes about prompts.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::body::read_object;
use super::chat;
use super::error::ApiError;
use super::fields::Fields;
use super::sampling::token_ids;
use crate::serve::app::App;
use crate::serve::caller::Caller;
use crate::text::{ControlToken, PlainStream, TokenCount, Tokenizer};

/// Answers `/tokenize`: the ids of a `prompt`, as `/v1/completions` makes them, or of the prompt of a
/// chat request, as `/v1/chat/completions` does.
pub(in crate::serve) async fn tokenize(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    app.check_open()?;
    Ok(Json(read_object(&app, &headers, body, tokenized).await?))
}

/// Answers `/detokenize`: the text of `tokens`, control tokens spelled out.
pub(in crate::serve) async fn detokenize(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    app.check_open()?;
    let text = read_object(&app, &headers, body, |app, mut fields, _| {
        app.check_model(fields.text("model")?.as_deref())?;
        let list = fields.list("tokens")?.ok_or_else(|| fields.missing("tokens"))?;
        fields.finish()?;
        let ids = token_ids("tokens", &list, app.vocabulary())?;
        Ok(json!({ "prompt": spelled(&app.model.tokenizer, &ids) }))
    });
    Ok(Json(text.await?))
}

/// Answers `/render`: the prompt of a chat request, as `/v1/chat/completions` makes it, as text and as
/// ids. A picture is the token of its every position.
pub(in crate::serve) async fn render(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    app.check_open()?;
    let rendered = read_object(&app, &headers, body, |app, fields, caller| {
        let ids = chat_ids(app, fields, caller)?;
        let prompt = spelled(&app.model.tokenizer, &ids);
        let mut body = counted(app, &ids);
        body["prompt"] = prompt.into();
        Ok(body)
    });
    Ok(Json(rendered.await?))
}

/// Answers `/version`.
pub(in crate::serve) async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}

/// The text of ids, as a reply of the same ids would have it.
pub(super) fn spelled(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut stream = PlainStream::new(&[]);
    let text = stream.push(tokenizer, ids);
    text + &stream.finish()
}

fn tokenized(app: &App, mut fields: Fields, caller: &Caller) -> Result<Value, ApiError> {
    let tokenizer = &app.model.tokenizer;
    let names = fields.boolean("return_token_strs")?.unwrap_or(false);
    let ids = match fields.text("prompt")? {
        Some(text) => {
            app.check_model(fields.text("model")?.as_deref())?;
            let begins = fields.boolean("add_special_tokens")?.unwrap_or(true);
            fields.finish()?;
            app.room("prompt", TokenCount::AtLeast(tokenizer.least_tokens(&text)))?;
            let mut ids = Vec::new();
            if begins {
                ids.push(tokenizer.control_token(ControlToken::Bos)?);
            }
            ids.extend(tokenizer.encode(&text)?);
            ids
        }
        None => chat_ids(app, fields, caller)?,
    };
    let name = |id: &u32| String::from_utf8_lossy(tokenizer.token_bytes(*id).unwrap_or_default());
    let names = names.then(|| ids.iter().map(name).collect::<Value>());
    let mut body = counted(app, &ids);
    if let Some(names) = names {
        body["token_strs"] = names;
    }
    Ok(body)
}

/// The prompt of a chat request.
fn chat_ids(app: &App, fields: Fields, caller: &Caller) -> Result<Vec<u32>, ApiError> {
    Ok(chat::prepare(app, chat::read(app, fields)?, caller)?.submission.into_prompt())
}

fn counted(app: &App, ids: &[u32]) -> Value {
    json!({
        "count": ids.len(),
        "max_model_len": app.engine.limits().context_tokens,
        "tokens": ids,
    })
}
