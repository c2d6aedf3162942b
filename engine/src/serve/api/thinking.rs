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
    let effort = fields.take("reasoning_effort").map(|value| effort(&value)).transpose()?;
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

fn effort(value: &Value) -> Result<EffortRequest, ApiError> {
    match value {
        Value::String(word) => Ok(EffortRequest::from_word(word)?),
        Value::Number(number) => {
            let number = number.as_u64().ok_or_else(|| {
                wrong_type("reasoning_effort", "a word or an integer from 1 to 100", value)
            })?;
            Ok(EffortRequest::On(Effort::from_number(number)?))
        }
        _ => Err(wrong_type("reasoning_effort", "a word or an integer from 1 to 100", value)),
    }
}
