//! Declared tools and the choice among them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::call_field::CallRules;
use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use crate::text::{Tool, ToolChoice};

/// Tools, the choice among them, and how far calls are held to them.
type Tools = (Vec<Tool>, ToolChoice, CallRules);

/// Takes `tools`, `tool_choice` and `parallel_tool_calls` of a chat request.
pub(super) fn take_tools(fields: &mut Fields) -> Result<Tools, ApiError> {
    take(fields, "function.name", |mut fields| {
        function_type(&mut fields)?;
        let function = fields.object("function")?.ok_or_else(|| fields.missing("function"))?;
        fields.finish()?;
        Ok(function)
    })
}

/// The same of a response, where what a function is stands beside its type.
pub(super) fn take_functions(fields: &mut Fields) -> Result<Tools, ApiError> {
    take(fields, "name", |mut fields| {
        function_type(&mut fields)?;
        Ok(fields)
    })
}

fn take(
    fields: &mut Fields,
    name: &str,
    function: impl Fn(Fields) -> Result<Fields, ApiError>,
) -> Result<Tools, ApiError> {
    let mut rules = CallRules::default();
    let tools = fields
        .list("tools")?
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            let fields = Fields::of(&format!("tools[{index}]"), value)?;
            tool(function(fields)?, &mut rules)
        })
        .collect::<Result<Vec<_>, _>>()?;
    check_names(&tools, name)?;
    rules.one_call = fields.boolean("parallel_tool_calls")? == Some(false);
    let choice = match fields.take("tool_choice") {
        None => ToolChoice::Auto,
        Some(value) => tool_choice(value, function)?,
    };
    if choice == ToolChoice::Required && tools.is_empty() {
        return Err(ApiError::invalid("tool_choice", "\"required\" needs at least one tool"));
    }
    Ok((tools, choice, rules))
}

/// Calls say which tool they are for by its name alone.
///
/// # Errors
/// 400 for a name that an earlier tool has; `name` is where each has its own.
pub(super) fn check_names(tools: &[Tool], name: &str) -> Result<(), ApiError> {
    let mut known = HashMap::new();
    for (at, tool) in tools.iter().enumerate() {
        if let Some(earlier) = known.insert(tool.name.as_str(), at) {
            let path = format!("tools[{at}].{name}");
            return Err(ApiError::invalid(&path, format!("tools[{earlier}] has it; rename one")));
        }
    }
    Ok(())
}

fn tool(mut function: Fields, rules: &mut CallRules) -> Result<Tool, ApiError> {
    let name = function.required_text("name")?;
    if name.is_empty() {
        return Err(ApiError::invalid(&function.path("name"), "is empty; name the tool"));
    }
    let description = function.text("description")?.unwrap_or_default();
    let parameters_path = function.path("parameters");
    let parameters = match function.take("parameters") {
        None => json!({}),
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => return Err(wrong_type(&parameters_path, "an object", &other)),
    };
    if function.boolean("strict")? == Some(true) {
        rules.strict.push(name.clone());
    }
    function.finish()?;
    Ok(Tool { name, description, parameters })
}

fn tool_choice(
    value: Value,
    function: impl Fn(Fields) -> Result<Fields, ApiError>,
) -> Result<ToolChoice, ApiError> {
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => Err(ApiError::invalid(
                "tool_choice",
                format!("{word:?} is not auto, none, required or a function"),
            )),
        },
        Value::Object(_) => {
            let mut function = function(Fields::of("tool_choice", value)?)?;
            let name = function.required_text("name")?;
            function.finish()?;
            Ok(ToolChoice::Named(name))
        }
        other => Err(wrong_type("tool_choice", "a string or an object", &other)),
    }
}

/// Takes a `type` that must be `function`.
pub(super) fn function_type(fields: &mut Fields) -> Result<(), ApiError> {
    match fields.text("type")?.as_deref() {
        None | Some("function") => Ok(()),
        Some(other) => Err(ApiError::unsupported(
            &fields.path("type"),
            format!("{other:?} is not supported; only functions are"),
        )),
    }
}
