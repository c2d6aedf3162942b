//! The handler.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::events::ResponseEvents;
use super::frame::Frame;
use super::output::Output;
use super::request::{self, ResponseRequest};
use crate::serve::answer::TextReader;
use crate::serve::answers::Answers;
use crate::serve::api::body::read_object;
use crate::serve::api::chat::{self, PreparedChat};
use crate::serve::api::error::ApiError;
use crate::serve::app::{App, Origin};
use crate::serve::sse;
use crate::serve::stamp::Stamp;

/// Answers `/v1/responses`.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.check_open()?;
    let prepared = read_object(&app, &headers, body, |app, fields, caller| {
        let ResponseRequest { chat, echo, encrypted } = request::read(app, fields)?;
        let prepared = chat::prepare(app, chat, caller).map_err(request::renamed)?;
        Ok((prepared, echo, encrypted))
    });
    let (PreparedChat { submission, options, reply, permit }, echo, encrypted) = prepared.await?;
    let max_tokens = submission.reported_limit;
    let reader = || TextReader::chat(options.clone());
    let origin = Origin { peer, endpoint: "/v1/responses" };
    let answers = app.start(origin, vec![submission], 1, reader, permit).await?;
    let frame = Frame::new(&Stamp::new("resp_", &app), echo);
    let output = Output::new(Arc::clone(&app.model.tokenizer), encrypted);
    let response = if reply.stream {
        let events = ResponseEvents::new(frame, output);
        sse::respond(answers, events, app.options.ping_interval)
    } else {
        whole_reply(answers, &frame, output).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

async fn whole_reply(
    mut answers: Answers,
    frame: &Frame,
    mut output: Output,
) -> Result<Response, ApiError> {
    while let Some(piece) = answers.piece().await {
        let (_, piece) = piece?;
        output.token(piece.token.as_ref());
        for event in piece.events {
            for change in output.changes(event) {
                drop(output.apply(&change));
            }
        }
    }
    Ok(Json(frame.complete(&output, answers.usage())).into_response())
}
