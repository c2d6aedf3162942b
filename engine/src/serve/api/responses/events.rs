//! A streamed response: events, numbered from 0.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::frame::Frame;
use super::item::ItemKind;
use super::output::Output;
use crate::serve::answer::Piece;
use crate::serve::answers::Answers;
use crate::serve::api::cutter::Change;
use crate::serve::api::error::ApiError;
use crate::serve::job::Failure;
use crate::serve::sse::{self, Chunks};
use crate::serve::usage::Usage;

/// A response as named events.
pub(super) struct ResponseEvents {
    frame: Frame,
    output: Output,
    /// Events so far.
    events: u64,
    ready: VecDeque<sse::Frame>,
}

impl ResponseEvents {
    /// Begins with what is known of the response.
    pub(super) fn new(frame: Frame, output: Output) -> Self {
        let mut events = Self { frame, output, events: 0, ready: VecDeque::new() };
        for name in ["response.created", "response.in_progress"] {
            events.queue(name, json!({ "response": events.frame.begun() }));
        }
        events
    }

    fn queue(&mut self, name: &'static str, mut body: Value) {
        body["type"] = name.into();
        body["sequence_number"] = self.events.into();
        self.events += 1;
        self.ready.push_back(sse::Frame::Named(name, body));
    }

    /// Queues an event about the last item, with what it says besides.
    fn tell(&mut self, name: &'static str, more: Value) {
        let (Some((place, item)), Value::Object(more)) = (self.output.last(), more) else { return };
        let mut body = Map::new();
        body.insert("item_id".to_owned(), item.id().into());
        body.insert("output_index".to_owned(), place.into());
        if !matches!(item.kind, ItemKind::Call { .. }) {
            body.insert("content_index".to_owned(), 0.into());
        }
        body.extend(more);
        self.queue(name, body.into());
    }

    fn change(&mut self, change: Change) {
        let log_probs = self.output.apply(&change);
        match change {
            Change::Start(_) => self.start(),
            Change::Grow(delta) => self.grow(&delta, &log_probs),
            Change::End => self.close(),
        }
    }

    fn start(&mut self) {
        let Some((place, item)) = self.output.last() else { return };
        let (begun, part) = (item.begun(), item.part());
        let body = json!({ "output_index": place, "item": begun });
        self.queue("response.output_item.added", body);
        if let Some(part) = part {
            self.tell("response.content_part.added", json!({ "part": part }));
        }
    }

    fn grow(&mut self, delta: &str, log_probs: &[Value]) {
        let Some((_, item)) = self.output.last() else { return };
        let (name, body) = match item.kind {
            ItemKind::Reasoning => ("response.reasoning_text.delta", json!({ "delta": delta })),
            ItemKind::Message => {
                ("response.output_text.delta", json!({ "delta": delta, "logprobs": log_probs }))
            }
            ItemKind::Call { .. } => {
                ("response.function_call_arguments.delta", json!({ "delta": delta }))
            }
        };
        self.tell(name, body);
    }

    fn close(&mut self) {
        let Some((place, item)) = self.output.last() else { return };
        let (text, part) = (&item.text, item.part());
        let (name, body) = match &item.kind {
            ItemKind::Reasoning => ("response.reasoning_text.done", json!({ "text": text })),
            ItemKind::Message => {
                ("response.output_text.done", json!({ "text": text, "logprobs": item.log_probs }))
            }
            ItemKind::Call { name, .. } => (
                "response.function_call_arguments.done",
                json!({ "name": name, "arguments": text }),
            ),
        };
        self.tell(name, body);
        if let Some(part) = part {
            self.tell("response.content_part.done", json!({ "part": part }));
        }
        let body = json!({ "output_index": place, "item": self.output.closed() });
        self.queue("response.output_item.done", body);
    }
}

impl Chunks for ResponseEvents {
    fn write(&mut self, _: usize, piece: Piece, _: &Answers) {
        self.output.token(piece.token.as_ref());
        for event in piece.events {
            for change in self.output.changes(event) {
                self.change(change);
            }
        }
    }

    fn end(&mut self, usage: Usage) {
        let name = if self.output.is_cut() { "response.incomplete" } else { "response.completed" };
        let response = self.frame.complete(&self.output, usage);
        self.queue(name, json!({ "response": response }));
    }

    fn fail(&mut self, failure: Failure) {
        let error = ApiError::from(failure);
        let response = self.frame.failed(&self.output, error.message());
        self.queue("response.failed", json!({ "response": response }));
    }

    fn take(&mut self) -> Option<sse::Frame> {
        self.ready.pop_front()
    }
}
