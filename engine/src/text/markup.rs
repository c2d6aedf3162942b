//! The markup of tool calls in prompts.

use serde_json::{Map, Value};

use super::control::ControlToken::Dsml;
use super::conversation::ToolCall;
use super::json_style::dumps;
use super::prompt::Prompt;

/// Parameter name for arguments that are not a JSON object.
const WHOLE_ARGUMENTS: &str = "arguments";

/// Appends `<`, the marker and ` calls>` with its line end: an opened block.
pub(super) fn open_calls(prompt: &mut Prompt) {
    prompt.text("\n\n");
    open_tag(prompt, " calls>\n");
}

/// Appends a whole block, from the blank line before it to its closing tag.
pub(super) fn render_calls(calls: &[ToolCall], prompt: &mut Prompt) {
    open_calls(prompt);
    for call in calls {
        open_tag(prompt, &format!(" invoke name=\"{}\">\n", call.name));
        render_arguments(&call.arguments, prompt);
        prompt.text("\n");
        close_tag(prompt, " invoke>\n");
    }
    close_tag(prompt, " calls>");
}

/// Appends one line per parameter, the lines separated but not ended by a line end.
fn render_arguments(arguments: &str, prompt: &mut Prompt) {
    let object = parse_arguments(arguments)
        .unwrap_or_else(|| Map::from_iter([(WHOLE_ARGUMENTS.to_owned(), Value::from(arguments))]));
    for (index, (key, value)) in object.iter().enumerate() {
        prompt.text(if index == 0 { "" } else { "\n" });
        let (text, is_string) = match value {
            Value::String(text) => (text.clone(), true),
            other => (dumps(other), false),
        };
        open_tag(prompt, &format!(" parameter name=\"{key}\" string=\"{is_string}\">"));
        // Values are raw: the parser takes everything up to the closing marker.
        prompt.text(&text);
        close_tag(prompt, " parameter>");
    }
}

/// The arguments as an object; an object inside one JSON string is unwrapped.
fn parse_arguments(arguments: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(arguments).ok()? {
        Value::Object(object) => Some(object),
        Value::String(inner) => serde_json::from_str(&inner).ok(),
        _ => None,
    }
}

fn open_tag(prompt: &mut Prompt, rest: &str) {
    prompt.text("<");
    prompt.control(Dsml);
    prompt.text(rest);
}

fn close_tag(prompt: &mut Prompt, rest: &str) {
    prompt.text("</");
    prompt.control(Dsml);
    prompt.text(rest);
}
