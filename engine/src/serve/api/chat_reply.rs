//! A chat reply, whole or as the chunks of a stream.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::chunks::{AnswerChunks, Spelling, StreamUsage};
use super::error::ApiError;
use super::logprobs::chat_entry;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
use crate::serve::app::App;
use crate::serve::random::random;
use crate::serve::stamp::Stamp;
use crate::text::{Event, FinishReason, Reply, Tokenizer};

/// Waits for the end and answers with the whole replies.
pub(super) async fn whole_reply(mut answers: Answers, app: &App) -> Result<Response, ApiError> {
    let stamp = Stamp::new("chatcmpl-", app);
    let mut replies: Vec<_> = (0..answers.len()).map(|_| (Reply::default(), vec![])).collect();
    while let Some(piece) = answers.piece().await {
        let (place, piece) = piece?;
        let (reply, entries) = &mut replies[place];
        entries.extend(piece.token.iter().filter_map(|t| chat_entry(&app.model.tokenizer, t)));
        reply.extend(piece.events);
    }
    let choices: Vec<_> = replies
        .into_iter()
        .enumerate()
        .map(|(place, (reply, entries))| choice(place, reply, &entries))
        .collect();
    let mut body = stamp.json("chat.completion");
    body.insert("choices".to_owned(), choices.into());
    body.insert("usage".to_owned(), answers.usage().json());
    Ok(Json(body).into_response())
}

fn choice(place: usize, reply: Reply, entries: &[Value]) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content_of(&reply));
    if !reply.reasoning.is_empty() {
        message.insert("reasoning_content".to_owned(), reply.reasoning.into());
    }
    if !reply.calls.is_empty() {
        let calls: Vec<_> = reply
            .calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| function(&call_id(index), &call.name, &call.arguments))
            .collect();
        message.insert("tool_calls".to_owned(), calls.into());
    }
    json!({
        "index": place,
        "message": message,
        "logprobs": logprobs(entries),
        "finish_reason": reply.finish.map(finish_word),
    })
}

/// Content of a reply that only calls tools is `null`, of any other the text, be it empty.
fn content_of(reply: &Reply) -> Value {
    if reply.content.is_empty() && !reply.calls.is_empty() {
        Value::Null
    } else {
        reply.content.as_str().into()
    }
}

/// The chunks of streamed replies, each of which begins with its role.
pub(super) fn stream(
    answers: &Answers,
    app: &App,
    usage: StreamUsage,
) -> AnswerChunks<ChatSpelling> {
    let first = json!({ "role": "assistant", "content": "" });
    let first: Vec<_> =
        (0..answers.len()).map(|place| change(place, &first, &Value::Null, None)).collect();
    let spelling = ChatSpelling { tokenizer: Arc::clone(&app.model.tokenizer) };
    AnswerChunks::new(Stamp::new("chatcmpl-", app), (usage, answers), spelling, first)
}

/// One choice of a chunk.
fn change(place: usize, delta: &Value, logprobs: &Value, finish: Option<FinishReason>) -> Value {
    json!({
        "index": place,
        "delta": delta,
        "logprobs": logprobs,
        "finish_reason": finish.map(finish_word),
    })
}

/// Chat replies by their changes.
pub(super) struct ChatSpelling {
    tokenizer: Arc<Tokenizer>,
}

impl Spelling for ChatSpelling {
    const OBJECT: &str = "chat.completion.chunk";

    fn choices(&mut self, place: usize, piece: Piece) -> Vec<Value> {
        let entry = piece.token.and_then(|token| chat_entry(&self.tokenizer, &token));
        let mut logprobs = logprobs(entry.as_slice());
        let mut choices = Vec::new();
        for event in piece.events {
            let (delta, finish) = match event {
                Event::CallEnd { .. } => continue,
                Event::Finish(reason) => (json!({}), Some(reason)),
                event => (delta(event), None),
            };
            if finish.is_some() && !logprobs.is_null() {
                // The last chunk says why the reply is over and nothing else.
                choices.push(change(place, &json!({}), &logprobs.take(), None));
            }
            choices.push(change(place, &delta, &logprobs.take(), finish));
        }
        if !logprobs.is_null() {
            choices.push(change(place, &json!({}), &logprobs, None));
        }
        choices
    }
}

/// What an event adds to the message.
fn delta(event: Event) -> Value {
    match event {
        Event::Reasoning(text) => json!({ "reasoning_content": text }),
        Event::Content(text) => json!({ "content": text }),
        Event::CallStart { call, name } => {
            let mut first = function(&call_id(call), &name, "");
            first["index"] = call.into();
            json!({ "tool_calls": [first] })
        }
        Event::CallArguments { call, fragment } => {
            json!({ "tool_calls": [{ "index": call, "function": { "arguments": fragment } }] })
        }
        Event::CallEnd { .. } | Event::Finish(_) => json!({}),
    }
}

fn function(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": id,
        "type": "function",
        "function": { "name": name, "arguments": arguments },
    })
}

/// A new id for the call at a place in its reply.
fn call_id(place: usize) -> String {
    format!("call_{place:02}_{:016x}", random())
}

fn logprobs(entries: &[Value]) -> Value {
    if entries.is_empty() { Value::Null } else { json!({ "content": entries }) }
}

pub(super) fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
    }
}
