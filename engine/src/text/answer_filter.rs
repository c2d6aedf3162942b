//! JSON output: what is around the JSON becomes a space.

use super::event::EventList;

const FENCES_OPEN: [&str; 2] = ["```json\n", "```\n"];
pub(super) const FENCE_CLOSE: &str = "\n```";

/// Text before or after the JSON of an answer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Surroundings {
    held: String,
    spaced: bool,
}

/// What ends the text before the JSON.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum JsonStart {
    /// The bracket that was read; it belongs to the JSON.
    Bracket,
    /// A code fence.
    Fence,
}

impl Surroundings {
    /// Reads one character before the JSON.
    pub(super) fn before(&mut self, character: char, events: &mut EventList) -> Option<JsonStart> {
        self.held.push(character);
        loop {
            if FENCES_OPEN.contains(&self.held.as_str()) {
                return Some(JsonStart::Fence);
            }
            if self.held.starts_with(['{', '[']) {
                return Some(JsonStart::Bracket);
            }
            let waits =
                self.held == "<" || FENCES_OPEN.iter().any(|fence| fence.starts_with(&self.held));
            if waits {
                return None;
            }
            self.held.remove(0);
            self.space(events);
        }
    }

    /// Reads one character after the JSON.
    pub(super) fn after(&mut self, character: char, events: &mut EventList) {
        let waits = match character {
            '\n' => !self.held.ends_with('<'),
            '<' => !self.held.ends_with('<'),
            _ => false,
        };
        if !waits {
            self.space(events);
            self.held.clear();
        }
        if matches!(character, '\n' | '<') {
            self.held.push(character);
        }
    }

    /// True when the text ends with the beginning of a tag; that beginning is forgotten.
    pub(super) fn take_tag_start(&mut self) -> bool {
        let starts = self.held.ends_with('<');
        if starts {
            self.held.clear();
        }
        starts
    }

    /// Shows what is held back.
    pub(super) fn flush(&mut self, events: &mut EventList) {
        if !self.held.is_empty() {
            self.held.clear();
            self.space(events);
        }
    }

    /// One space for all of it, wherever the text was cut into pieces.
    pub(super) fn space(&mut self, events: &mut EventList) {
        if !std::mem::replace(&mut self.spaced, true) {
            events.content(" ");
        }
    }
}
