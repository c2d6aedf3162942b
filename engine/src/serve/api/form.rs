//! Forms that answers are held to: `response_format`, `text` and `structured_outputs`.
//!
//! The first is the protocol's own and is shown to the model as well; a schema is followed whether
//! `strict` is given or not. The second is of this and other servers: `json`, `regex`, `choice` or
//! `grammar`, for any answer.

use serde_json::Value;

use super::call_field::CallField;
use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use crate::grammar::{Form, Grammar, GrammarError, ReplyForm};
use crate::serve::app::App;
use crate::text::ResponseFormat;

/// A form and the field that it comes from.
#[derive(Clone, Debug)]
pub(super) struct FormField {
    path: String,
    form: Form,
}

impl FormField {
    /// Takes `structured_outputs`.
    pub(super) fn take(fields: &mut Fields) -> Result<Option<Self>, ApiError> {
        let Some(mut outputs) = fields.object("structured_outputs")? else { return Ok(None) };
        let path = |name: &str| format!("structured_outputs.{name}");
        let mut forms = Vec::new();
        if let Some(schema) = outputs.take("json") {
            forms.push((path("json"), Form::JsonSchema(schema)));
        }
        if let Some(pattern) = outputs.text("regex")? {
            forms.push((path("regex"), Form::Regex(pattern)));
        }
        if let Some(texts) = outputs.list("choice")? {
            forms.push((path("choice"), Form::Choice(choices(&path("choice"), texts)?)));
        }
        if let Some(grammar) = outputs.text("grammar")? {
            forms.push((path("grammar"), Form::Lark(grammar)));
        }
        outputs.finish()?;
        let (Some((path, form)), None) = (forms.pop(), forms.pop()) else {
            let problem = "has not one of json, regex, choice and grammar; give exactly one";
            return Err(ApiError::invalid("structured_outputs", problem));
        };
        Ok(Some(Self { path, form }))
    }

    /// Takes either field of a chat request; the first is for the prompt.
    pub(super) fn take_chat(
        fields: &mut Fields,
    ) -> Result<(ResponseFormat, Option<Self>), ApiError> {
        let format = match fields.object("response_format")? {
            None => ResponseFormat::Text,
            Some(format) => response_format("response_format", format, true)?,
        };
        let outputs = Self::take(fields)?;
        let held = Self::of(&format, "response_format", "response_format.json_schema.schema");
        if held.is_none() {
            return Ok((format, outputs));
        }
        if outputs.is_some() {
            let problem = "not together with response_format; send one of them";
            return Err(ApiError::invalid("structured_outputs", problem));
        }
        Ok((format, held))
    }

    /// Takes `text`, as responses have it: a format of which the schema's fields are beside its type.
    pub(super) fn take_text(
        fields: &mut Fields,
    ) -> Result<(ResponseFormat, Option<Self>), ApiError> {
        let Some(mut text) = fields.object("text")? else {
            return Ok((ResponseFormat::Text, None));
        };
        if text.text("verbosity")?.is_some_and(|verbosity| verbosity != "medium") {
            let problem = "the model has no such setting; say it in the input";
            return Err(ApiError::unsupported("text.verbosity", problem));
        }
        let format = match text.object("format")? {
            None => ResponseFormat::Text,
            Some(format) => response_format("text.format", format, false)?,
        };
        text.finish()?;
        let held = Self::of(&format, "text.format", "text.format.schema");
        Ok((format, held))
    }

    /// What holds an answer to a format; `path` is where that is, `schema_path` its schema.
    fn of(format: &ResponseFormat, path: &str, schema_path: &str) -> Option<Self> {
        let (path, form) = match format {
            ResponseFormat::Text => return None,
            ResponseFormat::JsonObject => (path, Form::JsonObject),
            ResponseFormat::JsonSchema(schema) => (schema_path, Form::JsonSchema(schema.clone())),
        };
        Some(Self { path: path.to_owned(), form })
    }
}

/// Compiles what a reply is held to. Takes a while: not for the tasks of the runtime.
///
/// # Errors
/// 400 with what of it is wrong or not supported; `None` when it is held to nothing.
pub(super) fn compile(
    app: &App,
    held: Option<&FormField>,
    calls: Option<&CallField>,
    reasons: bool,
) -> Result<Option<Grammar>, ApiError> {
    if held.is_none() && calls.is_none() {
        return Ok(None);
    }
    if let (Some(held), Some(calls)) = (held, calls)
        && calls.calls.begun
    {
        let problem = "not together with a tool_choice that asks for a call";
        return Err(ApiError::invalid(&held.path, problem));
    }
    let refuse = |error: GrammarError| {
        let path = held.map_or("tools", |held| &held.path);
        ApiError::invalid(path, error.to_string())
    };
    let grammars = app.grammars().map_err(refuse)?;
    let form = |calls| ReplyForm { answer: held.map(|held| &held.form), calls, reasons };
    let asked = grammars.compile(form(calls.map(|calls| &calls.calls)));
    // What nobody insisted on may be more than can be followed.
    let least = calls.and_then(|calls| calls.least.as_ref());
    let made = match (asked, least) {
        (Err(_), Some(least)) => grammars.compile(form(Some(least))),
        (made, _) => made,
    };
    made.map(Some).map_err(refuse)
}

/// Reads the format at `path`, of which the schema's fields are beside its type or `nested`.
fn response_format(
    path: &str,
    mut format: Fields,
    nested: bool,
) -> Result<ResponseFormat, ApiError> {
    let kind = format.required_text("type")?;
    let asked = match kind.as_str() {
        "text" => ResponseFormat::Text,
        "json_object" => ResponseFormat::JsonObject,
        "json_schema" => {
            let mut named = format;
            if nested {
                let inner = named.object("json_schema")?;
                let inner = inner.ok_or_else(|| named.missing("json_schema"))?;
                std::mem::replace(&mut named, inner).finish()?;
            }
            // Labels of the schema.
            named.text("name")?;
            named.text("description")?;
            named.boolean("strict")?;
            let path = named.path("schema");
            let schema = named.take("schema").ok_or_else(|| named.missing("schema"))?;
            if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
                return Err(wrong_type(&path, "an object", &schema));
            }
            named.finish()?;
            return Ok(ResponseFormat::JsonSchema(schema));
        }
        _ => {
            let problem = format!("{kind:?} is not supported; use text, json_object, json_schema");
            return Err(ApiError::unsupported(path, problem));
        }
    };
    format.finish()?;
    Ok(asked)
}

fn choices(path: &str, texts: Vec<Value>) -> Result<Vec<String>, ApiError> {
    if texts.is_empty() {
        return Err(ApiError::invalid(path, "is empty; give at least one text"));
    }
    let text = |(index, text)| match text {
        Value::String(text) if !text.is_empty() => Ok(text),
        Value::String(_) => {
            Err(ApiError::invalid(&format!("{path}[{index}]"), "is empty; leave it out"))
        }
        other => Err(wrong_type(&format!("{path}[{index}]"), "a string", &other)),
    };
    texts.into_iter().enumerate().map(text).collect()
}
