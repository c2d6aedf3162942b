//! What a reply consists of, piece by piece.

/// A piece of a reply. Joined in order, the pieces of one kind are the whole.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Reasoning text.
    Reasoning(String),
    /// Answer text.
    Content(String),
    /// A tool call begins.
    CallStart {
        /// Place of the call in the reply, from 0.
        call: usize,
        /// The tool.
        name: String,
    },
    /// A fragment of a call's arguments.
    CallArguments {
        /// Place of the call.
        call: usize,
        /// JSON text; the fragments of a call that ended are a JSON object.
        fragment: String,
    },
    /// A tool call is complete.
    CallEnd {
        /// Place of the call.
        call: usize,
    },
    /// The reply is over; nothing follows.
    Finish(FinishReason),
}

/// Why a reply is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FinishReason {
    /// The model ended its turn, or a stop string was reached.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model ended its turn with tool calls.
    ToolCalls,
}

/// Collects events; neighbours of one kind become one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct EventList {
    events: Vec<Event>,
}

impl EventList {
    /// The events since the last call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        match self.events.last_mut() {
            _ if text.is_empty() => {}
            Some(Event::Reasoning(last)) => last.push_str(text),
            _ => self.push(Event::Reasoning(text.to_owned())),
        }
    }

    pub(super) fn content(&mut self, text: &str) {
        match self.events.last_mut() {
            _ if text.is_empty() => {}
            Some(Event::Content(last)) => last.push_str(text),
            _ => self.push(Event::Content(text.to_owned())),
        }
    }

    pub(super) fn arguments(&mut self, call: usize, text: &str) {
        match self.events.last_mut() {
            _ if text.is_empty() => {}
            Some(Event::CallArguments { call: last, fragment }) if *last == call => {
                fragment.push_str(text);
            }
            _ => self.push(Event::CallArguments { call, fragment: text.to_owned() }),
        }
    }
}
