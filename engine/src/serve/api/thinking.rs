//! Whether to think and how hard: three spellings of one wish, which must not contradict.

use serde_json::Value;

use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use crate::text::{Effort, EffortRequest};

/// Takes `thinking`, `reasoning_effort` and `chat_template_kwargs`.
///
/// `thinking.type` is `enabled`, `disabled` or `adaptive` (the same as enabled: the model decides
/// by itself how long it thinks); `thinking.budget_tokens` is accepted and changes nothing, as the
/// hosted model does. Without any of the fields the model thinks with effort high.
pub(super) fn take_thinking(fields: &mut Fields) -> Result<(bool, Effort), ApiError> {
    let mut wishes = Vec::new();
    if let Some(mut thinking) = fields.object("thinking")? {
        let kind = thinking.required_text("type")?;
        let on = match kind.as_str() {
            "enabled" | "adaptive" => true,
            "disabled" => false,
            _ => {
                return Err(ApiError::invalid(
                    "thinking.type",
                    format!("{kind:?} is not enabled, disabled or adaptive"),
                ));
            }
        };
        thinking.integer("budget_tokens", 0..=i128::from(u64::MAX))?;
        thinking.finish()?;
        wishes.push(("thinking", on));
    }
    if let Some(mut arguments) = fields.object("chat_template_kwargs")? {
        for (name, path) in [
            ("thinking", "chat_template_kwargs.thinking"),
            ("enable_thinking", "chat_template_kwargs.enable_thinking"),
        ] {
            wishes.extend(arguments.boolean(name)?.map(|on| (path, on)));
        }
        arguments.finish()?;
    }
    let effort = fields.take("reasoning_effort");
    let effort = effort.map(|value| effort_of("reasoning_effort", &value)).transpose()?;
    wishes.extend(effort.map(|effort| ("reasoning_effort", effort != EffortRequest::Off)));
    if let [(first, wish), ..] = wishes[..]
        && let Some((second, _)) = wishes.iter().find(|(_, other)| *other != wish)
    {
        let says = |on: bool| if on { "on" } else { "off" };
        let problem =
            format!("turns thinking {}, {first} turns it {}; send one", says(!wish), says(wish));
        return Err(ApiError::invalid(second, problem));
    }
    Ok(EffortRequest::resolve(wishes.first().map(|&(_, on)| on), effort))
}

/// Takes `reasoning`, as responses have it. No summary is made, which is one way to do `auto`.
pub(super) fn take_reasoning(fields: &mut Fields) -> Result<(bool, Effort), ApiError> {
    let Some(mut reasoning) = fields.object("reasoning")? else {
        return Ok(EffortRequest::resolve(None, None));
    };
    let path = reasoning.path("effort");
    let effort = reasoning.take("effort").map(|value| effort_of(&path, &value)).transpose()?;
    for name in ["summary", "generate_summary"] {
        if let Some(kind) = reasoning.text(name)?.filter(|kind| kind != "auto") {
            let problem = format!("{kind:?} is not supported: reasoning comes whole; use auto");
            return Err(ApiError::unsupported(&reasoning.path(name), problem));
        }
    }
    reasoning.finish()?;
    Ok(EffortRequest::resolve(None, effort))
}

fn effort_of(path: &str, value: &Value) -> Result<EffortRequest, ApiError> {
    let wanted = "a word or an integer from 1 to 100";
    match value {
        Value::String(word) => Ok(EffortRequest::from_word(word)?),
        Value::Number(number) => {
            let number = number.as_u64().ok_or_else(|| wrong_type(path, wanted, value))?;
            Ok(EffortRequest::On(Effort::from_number(number)?))
        }
        _ => Err(wrong_type(path, wanted, value)),
    }
}
