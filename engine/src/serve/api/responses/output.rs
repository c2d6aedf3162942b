//! The items of a reply.

use serde_json::Value;

use super::item::Item;
use crate::serve::api::cutter::{Change, ReplyCutter};
use crate::text::{Event, FinishReason};

/// Items, the last of which may still grow.
#[derive(Debug)]
pub(super) struct Output {
    cutter: ReplyCutter,
    items: Vec<Item>,
    finish: Option<FinishReason>,
    /// Reasoning is repeated in `encrypted_content`.
    encrypted: bool,
}

impl Output {
    /// None yet.
    pub(super) fn new(encrypted: bool) -> Self {
        Self { cutter: ReplyCutter::default(), items: Vec::new(), finish: None, encrypted }
    }

    /// What an event changes; each change is to be applied.
    pub(super) fn changes(&mut self, event: Event) -> Vec<Change> {
        if let Event::Finish(reason) = event {
            self.finish = Some(reason);
        }
        self.cutter.changes(event)
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Start(part) => self.items.push(Item::new(part)),
            Change::Grow(more) => {
                self.items.last_mut().into_iter().for_each(|item| item.text.push_str(more));
            }
            Change::End => {}
        }
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
