//! The blocks that a system turn carries: tools and response format.

use serde_json::json;

use super::control::ControlToken;
use super::conversation::{ResponseFormat, Tool};
use super::json_style::dumps;
use super::prompt::Prompt;

/// Tools block up to the schemas. Marker spellings in it mean the control tokens.
const TOOLS_HEAD: &str = r#"## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"#;

/// Tools block after the schemas.
const TOOLS_TAIL: &str = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";

const FORMAT_HEAD: &str =
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

/// Appends a blank line and the tools block, one schema per line; nothing without tools.
///
/// Schemas are text of the client: marker spellings in them stay text.
pub(super) fn render_tools(tools: &[&Tool], prompt: &mut Prompt) {
    if tools.is_empty() {
        return;
    }
    prompt.text("\n\n");
    let markers = [ControlToken::ThinkOpen, ControlToken::ThinkClose, ControlToken::Dsml];
    prompt.constant(TOOLS_HEAD, &markers);
    for (index, tool) in tools.iter().enumerate() {
        prompt.text(if index == 0 { "" } else { "\n" });
        prompt.text(&dumps(&json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        })));
    }
    prompt.text(TOOLS_TAIL);
}

/// Appends a blank line and the response format block; nothing for free text.
pub(super) fn render_format(format: &ResponseFormat, prompt: &mut Prompt) {
    let schema = match format {
        ResponseFormat::Text => return,
        ResponseFormat::JsonObject => dumps(&json!({"type": "json_object"})),
        ResponseFormat::JsonSchema(schema) => dumps(schema),
    };
    prompt.text("\n\n");
    prompt.text(FORMAT_HEAD);
    prompt.text(&schema);
}
