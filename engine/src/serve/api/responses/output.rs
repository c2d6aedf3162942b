//! The items of a reply.

use std::sync::Arc;

use serde_json::Value;

use super::item::{Item, ItemKind};
use crate::serve::api::cutter::{Change, ReplyCutter};
use crate::serve::api::logprobs::chat_entry;
use crate::serve::job::GeneratedToken;
use crate::text::{Event, FinishReason, Tokenizer};

/// Items, the last of which may still grow.
#[derive(Debug)]
pub(super) struct Output {
    cutter: ReplyCutter,
    items: Vec<Item>,
    finish: Option<FinishReason>,
    /// Reasoning is repeated in `encrypted_content`.
    encrypted: bool,
    tokenizer: Arc<Tokenizer>,
    /// Log-probabilities of tokens whose text is not certain yet.
    log_probs: Vec<Value>,
}

impl Output {
    /// None yet.
    pub(super) fn new(tokenizer: Arc<Tokenizer>, encrypted: bool) -> Self {
        Self {
            cutter: ReplyCutter::default(),
            items: Vec::new(),
            finish: None,
            encrypted,
            tokenizer,
            log_probs: vec![],
        }
    }

    /// Takes note of a token before what comes of it. Control tokens are of no text.
    pub(super) fn token(&mut self, token: Option<&GeneratedToken>) {
        let token = token.filter(|token| !self.tokenizer.is_added(token.id));
        self.log_probs.extend(token.and_then(|token| chat_entry(&self.tokenizer, token)));
    }

    /// What an event changes; each change is to be applied.
    pub(super) fn changes(&mut self, event: Event) -> Vec<Change> {
        if let Event::Finish(reason) = event {
            self.finish = Some(reason);
        }
        self.cutter.changes(event)
    }

    /// Applies a change; the log-probabilities that the item got with it. Only messages have any.
    pub(super) fn apply(&mut self, change: &Change) -> Vec<Value> {
        match (change, self.items.last_mut()) {
            (Change::Start(part), _) => self.items.push(Item::new(part)),
            (Change::Grow(more), Some(item)) => {
                item.text.push_str(more);
                let log_probs = std::mem::take(&mut self.log_probs);
                if matches!(item.kind, ItemKind::Message) {
                    item.log_probs.extend_from_slice(&log_probs);
                    return log_probs;
                }
            }
            (Change::Grow(_), None) | (Change::End, _) => {}
        }
        vec![]
    }

    /// The item that changed last, and its place.
    pub(super) fn last(&self) -> Option<(usize, &Item)> {
        self.items.last().map(|item| (self.items.len() - 1, item))
    }

    /// The limit ended the reply.
    pub(super) fn is_cut(&self) -> bool {
        self.finish == Some(FinishReason::Length)
    }

    /// The last item, which has ended, with all of its text.
    pub(super) fn closed(&self) -> Option<Value> {
        let status = if self.is_cut() { "incomplete" } else { "completed" };
        self.items.last().map(|item| item.json(status, self.encrypted))
    }

    /// All items with all of their text. The last one of a reply that was cut, or broke off, is not
    /// complete.
    pub(super) fn json(&self) -> Vec<Value> {
        let status = |place| {
            let is_last = place + 1 == self.items.len();
            let ends_early = is_last && (self.is_cut() || self.finish.is_none());
            if ends_early { "incomplete" } else { "completed" }
        };
        let items = self.items.iter().enumerate();
        items.map(|(place, item)| item.json(status(place), self.encrypted)).collect()
    }
}
