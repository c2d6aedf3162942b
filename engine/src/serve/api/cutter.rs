//! Where the parts of a reply begin and end: one after another, each of one kind.

use crate::text::Event;

/// What a part is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PartKind {
    /// Reasoning.
    Reasoning,
    /// Text of the answer.
    Text,
    /// A call of a tool; its text are the arguments.
    Call {
        /// The tool.
        name: String,
    },
}

/// What an event does to the parts.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A part begins, empty.
    Start(PartKind),
    /// The open part grows by a text.
    Grow(String),
    /// The open part is complete.
    End,
}

/// Cuts a reply into parts.
#[derive(Debug, Default)]
pub(super) struct ReplyCutter {
    open: Option<PartKind>,
}

impl ReplyCutter {
    /// What an event changes. A reply that is over has no open part.
    pub(super) fn changes(&mut self, event: Event) -> Vec<Change> {
        let mut changes = Vec::new();
        match event {
            Event::Reasoning(text) => {
                self.switch(PartKind::Reasoning, &mut changes);
                changes.push(Change::Grow(text));
            }
            Event::Content(text) => {
                self.switch(PartKind::Text, &mut changes);
                changes.push(Change::Grow(text));
            }
            Event::CallStart { name, .. } => {
                self.close(&mut changes);
                self.switch(PartKind::Call { name }, &mut changes);
            }
            Event::CallArguments { fragment, .. } => changes.push(Change::Grow(fragment)),
            Event::CallEnd { .. } | Event::Finish(_) => self.close(&mut changes),
        }
        changes
    }

    fn switch(&mut self, kind: PartKind, changes: &mut Vec<Change>) {
        if self.open.as_ref() != Some(&kind) {
            self.close(changes);
            changes.push(Change::Start(kind.clone()));
            self.open = Some(kind);
        }
    }

    fn close(&mut self, changes: &mut Vec<Change>) {
        if self.open.take().is_some() {
            changes.push(Change::End);
        }
    }
}
