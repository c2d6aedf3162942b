//! Tool calls as the model writes them.
//!
//! Parameters come in the order of the schema's properties, those that are not required may be left
//! out, and others are not written. A plain string, or one of some, is written as it is; every other
//! value is JSON by its schema.

use serde_json::{Map, Value, json};

use super::error::GrammarError;
use super::form::with_bounded_blanks;

/// The calls that a reply may make.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls {
    /// The tools.
    pub tools: Vec<CalledTool>,
    /// There may be more than one call.
    pub several: bool,
    /// The prompt has begun them: the reply is calls and nothing else.
    pub begun: bool,
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct CalledTool {
    /// Its name.
    pub name: String,
    /// The schema that its arguments are held to; any arguments without one.
    pub schema: Option<Value>,
}

/// Keywords of the schema of all arguments that are followed, or say nothing about them.
const KEYWORDS: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "examples",
];

/// Says nothing about a value.
const ANNOTATIONS: [&str; 4] = ["title", "description", "default", "examples"];

/// Ends a name in the markup.
const UNWRITABLE: [char; 2] = ['"', '\n'];

/// What calls of any tool are made of. `TEXT` and `VALUE` are read up to a marker.
const SHARED: &str = r#"
TEXT: /(.|\n)*/
OPEN: /(.|\n)*</
VALUE: /(.|\n)*<\//
KEY: /[^"\n]+/
any_arguments: "\n" | any_argument*
any_argument: "<" MARKER " parameter name=\"" KEY "\" string=\"true\">" VALUE MARKER " parameter>\n"
    | "<" MARKER " parameter name=\"" KEY "\" string=\"false\">" %json ANY "</" MARKER " parameter>\n"
"#;

impl Calls {
    /// In Lark, for a reply that may be `answer` instead, another grammar's name, or any text.
    pub(super) fn lark(&self, marker: u32, answer: Option<&str>) -> Result<String, GrammarError> {
        let m = format!("<[{marker}]>");
        let begin = format!(r#"{m} " calls>\n" calls"#);
        let start = match answer {
            _ if self.begun => "calls".to_owned(),
            Some(answer) => format!(r"{answer} | /\n*</ {begin}"),
            None => format!("TEXT | OPEN {begin}"),
        };
        let several = if self.several { "+" } else { "" };
        let any: Vec<_> = (0..self.tools.len()).map(|at| format!("call_{at}")).collect();
        let mut grammar = format!(
            "start: {start}\ncalls: call{several} \"</\" {m} \" calls>\"\ncall: {}\n{}",
            any.join(" | "),
            SHARED
                .replace("MARKER", &m)
                .replace("ANY", &with_bounded_blanks(json!({})).to_string())
        );
        for (at, tool) in self.tools.iter().enumerate() {
            if tool.name.contains(UNWRITABLE) {
                let problem = format!("{:?} cannot be written as a tool's name", tool.name);
                return Err(GrammarError::Form { problem });
            }
            let open = quoted(&format!(" invoke name=\"{}\">\n", tool.name));
            let arguments = match &tool.schema {
                None => "any_arguments".to_owned(),
                Some(schema) => arguments(&tool.name, schema, &m)?,
            };
            grammar +=
                &format!("call_{at}: \"<\" {m} {open} ({arguments}) \"</\" {m} \" invoke>\\n\"\n");
        }
        Ok(grammar)
    }
}

fn arguments(tool: &str, schema: &Value, m: &str) -> Result<String, GrammarError> {
    let refuse = |problem: String| GrammarError::Form { problem: format!("{tool}: {problem}") };
    let known = |key: &&String| KEYWORDS.contains(&key.as_str());
    let object =
        schema.as_object().filter(|object| object.get("type").is_none_or(|kind| kind == "object"));
    let Some(object) = object else { return Err(refuse("arguments are an object".into())) };
    if let Some(key) = object.keys().find(|key| !known(key)) {
        return Err(refuse(format!("{key:?} is not supported for the arguments as a whole")));
    }
    let none = Map::new();
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<_> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if let Some(key) = properties.keys().find(|key| key.contains(UNWRITABLE)) {
        return Err(refuse(format!("{key:?} cannot be written as a parameter's name")));
    }
    if let Some(missing) = required.iter().find(|name| !properties.contains_key(**name)) {
        return Err(refuse(format!("{missing:?} is required and no property")));
    }
    let parameters: Vec<_> = properties
        .iter()
        .map(|(key, value)| {
            let optional = if required.contains(&key.as_str()) { "" } else { "?" };
            format!("({}){optional}", parameter(key, value, object, m))
        })
        .collect();
    let parameters = parameters.join(" ");
    Ok(if required.is_empty() { format!("\"\\n\" | {parameters}") } else { parameters }
        .trim_end_matches(" | ")
        .to_owned())
}

/// A parameter and its value, up to the line end.
fn parameter(key: &str, schema: &Value, root: &Map<String, Value>, m: &str) -> String {
    let tag =
        |is_string: bool| quoted(&format!(" parameter name=\"{key}\" string=\"{is_string}\">"));
    let close = format!(r#"{m} " parameter>\n""#);
    if let Some(texts) = texts(schema) {
        return format!("\"<\" {m} {} ({}) \"</\" {close}", tag(true), texts.join(" | "));
    }
    if is_plain_string(schema) {
        return format!("\"<\" {m} {} VALUE {close}", tag(true));
    }
    let mut schema = schema.clone();
    if let Value::Object(schema) = &mut schema {
        // References look from the root.
        for key in ["$defs", "definitions"] {
            schema.extend(root.get(key).map(|value| (key.to_owned(), value.clone())));
        }
    }
    let schema = with_bounded_blanks(schema);
    format!("\"<\" {m} {} %json {schema} \"</\" {close}", tag(false))
}

/// The values of a schema that allows some strings and nothing else.
fn texts(schema: &Value) -> Option<Vec<String>> {
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), None) => values.iter().collect(),
        (None, Some(value)) => vec![value],
        _ => return None,
    };
    let object = schema.as_object()?;
    let rest = ["enum", "const", "type"];
    let alone = object
        .keys()
        .all(|key| rest.contains(&key.as_str()) || ANNOTATIONS.contains(&key.as_str()));
    let is_string = object.get("type").is_none_or(|kind| kind == "string");
    let text = |value: &Value| Some(quoted(value.as_str().filter(|text| !text.is_empty())?));
    values.into_iter().map(text).collect::<Option<Vec<_>>>().filter(|_| alone && is_string)
}

fn is_plain_string(schema: &Value) -> bool {
    schema.as_object().is_some_and(|object| {
        object.get("type").is_some_and(|kind| kind == "string")
            && object.keys().all(|key| key == "type" || ANNOTATIONS.contains(&key.as_str()))
    })
}

/// A string of Lark, spelled as in JSON.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}
