//! The two handlers.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::content::{Block, stop};
use super::error::MessagesError;
use super::events::MessageEvents;
use super::{request, usage};
use crate::serve::answer::TextReader;
use crate::serve::answers::Answers;
use crate::serve::api::body::read_object;
use crate::serve::api::chat::{self, PreparedChat};
use crate::serve::api::cutter::{Change, ReplyCutter};
use crate::serve::app::{App, Origin};
use crate::serve::sse;
use crate::serve::stamp::Stamp;
use crate::text::{Event, FinishReason};

/// Answers `/v1/messages`.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, MessagesError> {
    app.check_open()?;
    let prepared = read_object(&app, &headers, body, |app, fields, caller| {
        chat::prepare(app, request::read(app, fields, false)?, caller)
    });
    let PreparedChat { submission, options, reply, permit } = prepared.await?;
    let (max_tokens, prompt_tokens) = (submission.reported_limit, submission.prompt_tokens());
    let reader = || TextReader::chat(options.clone());
    let origin = Origin { peer, endpoint: "/v1/messages" };
    let answers = app.start(origin, vec![submission], 1, reader, permit).await?;
    let response = if reply.stream {
        let events = MessageEvents::new(&Stamp::new("msg_", &app), prompt_tokens);
        sse::respond(answers, events, app.options.ping_interval)
    } else {
        whole_reply(answers, &app).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

/// Answers `/v1/messages/count_tokens`.
pub(in crate::serve) async fn count(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, MessagesError> {
    app.check_open()?;
    let prepared = read_object(&app, &headers, body, |app, fields, caller| {
        chat::prepare(app, request::read(app, fields, true)?, caller)
    });
    Ok(Json(json!({ "input_tokens": prepared.await?.submission.prompt_tokens() })))
}

async fn whole_reply(mut answers: Answers, app: &App) -> Result<Response, MessagesError> {
    let stamp = Stamp::new("msg_", app);
    let (mut blocks, mut cutter, mut finish) = (Vec::<Block>::new(), ReplyCutter::default(), None);
    while let Some(piece) = answers.piece().await {
        let (_, piece) = piece?;
        for event in piece.events {
            if let Event::Finish(reason) = event {
                finish = Some((reason, piece.stop.clone()));
            }
            for change in cutter.changes(event) {
                match change {
                    Change::Start(part) => blocks.push(Block::new(part)),
                    Change::Grow(more) => blocks.last_mut().into_iter().for_each(|b| b.grow(&more)),
                    Change::End => {}
                }
            }
        }
    }
    let (reason, stopped_by) = finish.unwrap_or((FinishReason::Stop, None));
    let content: Vec<_> = blocks.iter().map(Block::json).collect();
    let mut body = message(&stamp, &content);
    let Value::Object(ending) = stop(reason, stopped_by.as_deref()) else { unreachable!() };
    body.as_object_mut().into_iter().for_each(|body| body.extend(ending.clone()));
    body["usage"] = usage::json(answers.usage());
    Ok(Json(body).into_response())
}

/// A message that is not over yet.
pub(super) fn message(stamp: &Stamp, content: &[Value]) -> Value {
    json!({
        "id": stamp.id(),
        "type": "message",
        "role": "assistant",
        "model": stamp.model(),
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
    })
}
