//! The tool-call block of a reply: markup in, calls with JSON arguments out.
//!
//! Inside the block only tags count; text between them is dropped. Tags are found by the text
//! around the marker token, so both the current spelling (` calls>`, a space after the marker) and
//! the previous one (`tool_calls>`, no space) are understood.
//!
//! The arguments of a call that was closed are always one JSON object: keys are escaped, and a value
//! that is not marked as a string waits for its end and becomes a string when it is not JSON. A
//! parameter without the mark is read in the same way. String values stream.

use serde_json::Value;

use super::control::ControlToken;
use super::event::{Event, EventList};
use super::json_style::write_escaped;

const CALL_OPEN: &str = "invoke name=\"";
const PARAMETER_OPEN: &str = "parameter name=\"";
/// What may follow a parameter's key: the attribute that tells strings from JSON, or nothing.
const KEY_ENDS: [&str; 2] = ["\" string=\"", "\">"];
/// More of the text before a tag is never looked at.
const TAIL_BYTES: usize = 32;

/// Where in the block the text is.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Place {
    /// Between calls, or between the parameters of one.
    Tags,
    /// In a call's name.
    Name,
    /// In a parameter's key.
    Key,
    /// In the attribute after the key.
    Attribute,
    /// In a string value.
    StringValue,
    /// In a value of any other type.
    JsonValue,
    /// Behind the block; everything is dropped.
    Closed,
}

/// Parser of one block.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ToolBlock {
    place: Place,
    /// Text that cannot be judged yet, or that is complete only at the end of its place.
    held: String,
    /// The last marker was preceded by `</`.
    closing: bool,
    /// Calls named so far.
    calls: usize,
    /// The last named call is not complete.
    in_call: bool,
    /// Its parameters so far.
    parameters: usize,
}

impl ToolBlock {
    /// A block that was just opened.
    pub(super) fn new() -> Self {
        Self {
            place: Place::Tags,
            held: String::new(),
            closing: false,
            calls: 0,
            in_call: false,
            parameters: 0,
        }
    }

    /// Calls named so far.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// True when the closing tag of the block was read.
    pub(super) fn is_closed(&self) -> bool {
        self.place == Place::Closed
    }

    /// Reads one character of text.
    pub(super) fn push(&mut self, character: char, events: &mut EventList) {
        match self.place {
            Place::Tags => self.tag(character, events),
            Place::Name if character == '"' => self.start_call(events),
            Place::Key => self.key(character, events),
            Place::Attribute if character == '>' => self.start_value(events),
            Place::StringValue => self.string_value(character, events),
            Place::Name | Place::Attribute | Place::JsonValue => self.held.push(character),
            Place::Closed => {}
        }
    }

    /// Reads one token of the added vocabulary.
    pub(super) fn push_token(
        &mut self,
        token: Option<ControlToken>,
        spelling: &str,
        events: &mut EventList,
    ) {
        let marker = token == Some(ControlToken::Dsml);
        let ends_value = marker
            && matches!(self.place, Place::StringValue | Place::JsonValue)
            && self.held.ends_with("</");
        if ends_value {
            self.end_value(events);
        } else if self.place == Place::Tags {
            self.closing = marker && self.held.ends_with("</");
            self.held.clear();
        } else {
            for character in spelling.chars() {
                self.push(character, events);
            }
        }
    }

    /// Ends the reply inside the block: text held back in a value is shown, half a tag is not.
    pub(super) fn finish(&mut self, events: &mut EventList) {
        match self.place {
            Place::StringValue => self.emit_escaped(&self.held, events),
            Place::JsonValue => self.emit(&self.held, events),
            // The quote has come; what follows it tells whether it was the last of the key.
            Place::Key if self.held.len() > 1 => self.emit("\": ", events),
            Place::Key => self.emit(&self.held, events),
            _ => {}
        }
        self.held.clear();
    }

    /// Appends to the arguments of the current call.
    fn emit(&self, json: &str, events: &mut EventList) {
        let call = self.calls.checked_sub(1).expect("arguments are read inside a named call");
        events.arguments(call, json);
    }

    /// Appends the inside of a JSON string.
    fn emit_escaped(&self, text: &str, events: &mut EventList) {
        let mut json = String::new();
        write_escaped(text, &mut json);
        self.emit(&json, events);
    }

    fn tag(&mut self, character: char, events: &mut EventList) {
        self.held.push(character);
        if self.held.ends_with(CALL_OPEN) {
            self.end_call(events);
            self.enter(Place::Name);
        } else if self.in_call && self.held.ends_with(PARAMETER_OPEN) {
            let separator = if self.parameters == 0 { "{\"" } else { ", \"" };
            self.emit(separator, events);
            self.parameters += 1;
            self.enter(Place::Key);
        } else if self.closing {
            // The bracket is not waited for: a reply cut before it still has its last call.
            match self.held.trim_start() {
                "calls" | "tool_calls" => {
                    self.end_call(events);
                    self.enter(Place::Closed);
                }
                "invoke" => {
                    self.end_call(events);
                    self.enter(Place::Tags);
                }
                _ => {}
            }
        }
        if self.held.len() > TAIL_BYTES {
            let kept = self.held.ceil_char_boundary(self.held.len() - TAIL_BYTES);
            self.held.drain(..kept);
            self.closing = false;
        }
    }

    fn enter(&mut self, place: Place) {
        self.place = place;
        self.held.clear();
        self.closing = false;
    }

    fn start_call(&mut self, events: &mut EventList) {
        let name = std::mem::take(&mut self.held);
        events.push(Event::CallStart { call: self.calls, name });
        self.calls += 1;
        self.in_call = true;
        self.parameters = 0;
        self.enter(Place::Tags);
    }

    fn end_call(&mut self, events: &mut EventList) {
        if !std::mem::replace(&mut self.in_call, false) {
            return;
        }
        let end = if self.parameters == 0 { "{}" } else { "}" };
        self.emit(end, events);
        events.push(Event::CallEnd { call: self.calls - 1 });
    }

    /// A quote ends the key only together with what must follow it; keys are not escaped.
    fn key(&mut self, character: char, events: &mut EventList) {
        self.held.push(character);
        while !KEY_ENDS.iter().any(|end| end.starts_with(&self.held)) {
            let first = self.held.remove(0);
            self.emit_escaped(first.encode_utf8(&mut [0; 4]), events);
        }
        if let Some(end) = KEY_ENDS.iter().position(|end| **end == self.held) {
            self.emit("\": ", events);
            self.enter(if end == 0 { Place::Attribute } else { Place::JsonValue });
        }
    }

    fn start_value(&mut self, events: &mut EventList) {
        if self.held.starts_with("true") {
            self.emit("\"", events);
            self.enter(Place::StringValue);
        } else {
            self.enter(Place::JsonValue);
        }
    }

    /// Only `<` and `</` wait: the marker token may follow.
    fn string_value(&mut self, character: char, events: &mut EventList) {
        if !(character == '<' || (character == '/' && self.held == "<")) {
            self.held.push(character);
            self.emit_escaped(&self.held, events);
            self.held.clear();
        } else {
            if character == '<' {
                self.emit_escaped(&self.held, events);
                self.held.clear();
            }
            self.held.push(character);
        }
    }

    fn end_value(&mut self, events: &mut EventList) {
        if self.place == Place::StringValue {
            self.emit("\"", events);
        } else {
            self.held.truncate(self.held.len() - "</".len());
            if is_json(&self.held) {
                self.emit(&self.held, events);
            } else {
                self.emit("\"", events);
                self.emit_escaped(&self.held, events);
                self.emit("\"", events);
            }
        }
        self.enter(Place::Tags);
        self.closing = true;
    }
}

/// True when `text` is one JSON value, also inside an object: the array around it counts towards
/// the nesting limit of readers.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<[Value; 1]>(&format!("[{text}]")).is_ok()
}
