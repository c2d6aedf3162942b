//! Fields of a request besides its messages.

use serde_json::Value;

use super::blocks::take_messages;
use crate::sample::SamplingParameters;
use crate::serve::api::call_field::CallRules;
use crate::serve::api::chat::ChatRequest;
use crate::serve::api::error::ApiError;
use crate::serve::api::fields::{Fields, wrong_type};
use crate::serve::api::sampling::{ANY_LIMIT, ReplyFields};
use crate::serve::api::tools::check_names;
use crate::serve::app::App;
use crate::text::{Conversation, Effort, Tool, ToolChoice};

/// Reads a request; one that only counts tokens has no token limit and no say about the reply.
pub(super) fn read(app: &App, mut fields: Fields, counts: bool) -> Result<ChatRequest, ApiError> {
    app.check_model(Some(&fields.required_text("model")?))?;
    let (messages, pictures) = take_messages(&mut fields)?;
    let mut rules = CallRules::default();
    let tools = tools(&mut fields, &mut rules)?;
    let tool_choice = tool_choice(&mut fields, &tools, &mut rules)?;
    let thinking = thinking(&mut fields)?;
    let reply = if counts { ReplyFields::default() } else { reply(&mut fields)? };
    if let Some(mut metadata) = fields.object("metadata")? {
        // Says who asks; it changes nothing about the answer.
        metadata.text("user_id")?;
        metadata.finish()?;
    }
    fields.finish_knowing(|name| match name {
        "container" | "mcp_servers" | "context_management" => {
            Some("the server runs no tools and keeps nothing; leave it out")
        }
        "service_tier" => Some("there is one tier; leave it out"),
        "max_tokens" | "temperature" | "stream" if counts => {
            Some("a field of /v1/messages; counting makes no reply")
        }
        _ => None,
    })?;
    let conversation = Conversation {
        tools,
        tool_choice,
        thinking,
        effort: Effort::HIGH,
        ..Conversation::new(messages)
    };
    Ok(ChatRequest { conversation, pictures, form: None, rules, reply })
}

fn tools(fields: &mut Fields, rules: &mut CallRules) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools")?.unwrap_or_default();
    let tool = |(index, value)| {
        let mut tool = Fields::of(&format!("tools[{index}]"), value)?;
        tool.object("cache_control")?;
        if let Some(kind) = tool.text("type")?.filter(|kind| kind != "custom") {
            let problem = format!("{kind:?} would run on the server, which runs none; use custom");
            return Err(ApiError::unsupported(&tool.path("type"), problem));
        }
        let name = tool.required_text("name")?;
        let description = tool.text("description")?.unwrap_or_default();
        let path = tool.path("input_schema");
        let parameters = match tool.take("input_schema") {
            Some(schema @ Value::Object(_)) => schema,
            Some(other) => return Err(wrong_type(&path, "an object", &other)),
            None => return Err(tool.missing("input_schema")),
        };
        if tool.boolean("strict")? == Some(true) {
            rules.strict.push(name.clone());
        }
        tool.finish()?;
        if name.is_empty() {
            return Err(ApiError::invalid(&format!("tools[{index}].name"), "is empty; name it"));
        }
        Ok(Tool { name, description, parameters })
    };
    let tools = list.into_iter().enumerate().map(tool).collect::<Result<Vec<_>, _>>()?;
    check_names(&tools, "name")?;
    Ok(tools)
}

fn tool_choice(
    fields: &mut Fields,
    tools: &[Tool],
    rules: &mut CallRules,
) -> Result<ToolChoice, ApiError> {
    let Some(mut choice) = fields.object("tool_choice")? else { return Ok(ToolChoice::Auto) };
    let kind = choice.required_text("type")?;
    let asked = match kind.as_str() {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "any" if tools.is_empty() => {
            return Err(ApiError::invalid("tool_choice", "\"any\" needs at least one tool"));
        }
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Named(choice.required_text("name")?),
        _ => {
            let problem = format!("{kind:?} is not auto, any, tool or none");
            return Err(ApiError::invalid("tool_choice.type", problem));
        }
    };
    rules.one_call = choice.boolean("disable_parallel_tool_use")? == Some(true);
    choice.finish()?;
    Ok(asked)
}

/// Off unless asked for. The budget is taken and changes nothing: the model decides by itself how
/// long it thinks, within `max_tokens`.
fn thinking(fields: &mut Fields) -> Result<bool, ApiError> {
    let Some(mut thinking) = fields.object("thinking")? else { return Ok(false) };
    let kind = thinking.required_text("type")?;
    thinking.integer("budget_tokens", 0..=ANY_LIMIT)?;
    thinking.finish()?;
    match kind.as_str() {
        "enabled" | "adaptive" => Ok(true),
        "disabled" => Ok(false),
        _ => {
            let problem = format!("{kind:?} is not enabled, disabled or adaptive");
            Err(ApiError::invalid("thinking.type", problem))
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "samplers take f32; ranges are checked before")]
fn reply(fields: &mut Fields) -> Result<ReplyFields, ApiError> {
    let max_tokens = fields.integer("max_tokens", 1..=ANY_LIMIT)?;
    let max_tokens = max_tokens.ok_or_else(|| fields.missing("max_tokens"))?;
    let mut number =
        |name, open: f64| fields.number(name, 0.0..=1.0).map(|value| value.unwrap_or(open) as f32);
    let (temperature, top_p) = (number("temperature", 1.0)?, number("top_p", 1.0)?);
    let top_k = fields.integer("top_k", 0..=ANY_LIMIT)?.unwrap_or(0);
    let stop = ReplyFields::take_stops(fields, "stop_sequences")?;
    Ok(ReplyFields {
        max_tokens: Some(u64::try_from(max_tokens).unwrap_or(u64::MAX)),
        sampling: SamplingParameters {
            temperature,
            // 0 keeps the most likely token, as any share does that it covers alone.
            top_p: top_p.max(f32::MIN_POSITIVE),
            top_k: i64::try_from(top_k).unwrap_or(i64::MAX),
            ..SamplingParameters::default()
        },
        stop,
        stream: fields.boolean("stream")?.unwrap_or(false),
        ..ReplyFields::default()
    })
}
