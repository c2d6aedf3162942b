//! A chat reply, whole or as the chunks of a stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::logprobs::chat_entry;
use crate::serve::answer::{Answer, Piece};
use crate::serve::app::App;
use crate::serve::job::GeneratedToken;
use crate::serve::random::random;
use crate::serve::sse::{Chunks, Frame};
use crate::serve::stamp::Stamp;
use crate::text::{Event, FinishReason, Reply, Tokenizer};

/// Waits for the end and answers with the whole reply.
pub(super) async fn whole_reply(mut answer: Answer, app: &App) -> Result<Response, ApiError> {
    let stamp = Stamp::new("chatcmpl", app);
    let mut reply = Reply::default();
    let mut entries = Vec::new();
    while let Some(piece) = answer.piece().await {
        let piece = piece?;
        entries.extend(piece.token.iter().filter_map(|t| chat_entry(&app.model.tokenizer, t)));
        reply.extend(piece.events);
    }
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
    let mut body = stamp.json("chat.completion");
    body.insert(
        "choices".to_owned(),
        json!([{
            "index": 0,
            "message": message,
            "logprobs": logprobs(&entries),
            "finish_reason": reply.finish.map(finish_word),
        }]),
    );
    body.insert("usage".to_owned(), answer.usage().json());
    Ok(Json(body).into_response())
}

/// Content of a reply that only calls tools is `null`, of any other the text, be it empty.
fn content_of(reply: &Reply) -> Value {
    if reply.content.is_empty() && !reply.calls.is_empty() {
        Value::Null
    } else {
        reply.content.as_str().into()
    }
}

/// The chunks of a streamed reply.
pub(super) struct ChatStream {
    answer: Answer,
    stamp: Stamp,
    tokenizer: Arc<Tokenizer>,
    include_usage: bool,
    ready: VecDeque<Frame>,
}

impl ChatStream {
    pub(super) fn new(answer: Answer, app: &App, include_usage: bool) -> Self {
        let mut stream = Self {
            answer,
            stamp: Stamp::new("chatcmpl", app),
            tokenizer: Arc::clone(&app.model.tokenizer),
            include_usage,
            ready: VecDeque::new(),
        };
        stream.chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null, None);
        stream
    }

    /// Queues a chunk with one choice.
    fn chunk(&mut self, delta: &Value, logprobs: &Value, finish: Option<FinishReason>) {
        self.queue(json!([{
            "index": 0,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish.map(finish_word),
        }]));
    }

    fn queue(&mut self, choices: Value) {
        let mut body = self.stamp.json("chat.completion.chunk");
        let counts = choices.as_array().is_some_and(Vec::is_empty);
        body.insert("choices".to_owned(), choices);
        if self.include_usage {
            let usage = if counts { self.answer.usage().json() } else { Value::Null };
            body.insert("usage".to_owned(), usage);
        }
        self.ready.push_back(Frame::Data(body.into()));
    }

    fn queue_piece(&mut self, piece: Piece) {
        let mut logprobs = piece.token.map_or(Value::Null, |token| self.logprobs_of(&token));
        for event in piece.events {
            let (delta, finish) = match event {
                Event::CallEnd { .. } => continue,
                Event::Finish(reason) => (json!({}), Some(reason)),
                event => (delta(event), None),
            };
            if finish.is_some() && !logprobs.is_null() {
                // The last chunk says why the reply is over and nothing else.
                self.chunk(&json!({}), &logprobs.take(), None);
            }
            self.chunk(&delta, &logprobs.take(), finish);
            if finish.is_some() {
                if self.include_usage {
                    self.queue(json!([]));
                }
                self.ready.push_back(Frame::Done);
            }
        }
        if !logprobs.is_null() {
            self.chunk(&json!({}), &logprobs, None);
        }
    }

    fn logprobs_of(&self, token: &GeneratedToken) -> Value {
        logprobs(chat_entry(&self.tokenizer, token).as_slice())
    }
}

impl Chunks for ChatStream {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(Some(frame));
            }
            match ready!(self.answer.poll_piece(context)) {
                None => return Poll::Ready(None),
                Some(Ok(piece)) => self.queue_piece(piece),
                Some(Err(failure)) => {
                    return Poll::Ready(Some(Frame::Data(ApiError::from(failure).json())));
                }
            }
        }
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
