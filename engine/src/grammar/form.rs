//! The forms that an answer can be held to.

use llguidance::api::GrammarWithLexer;
use serde_json::{Value, json};

/// A form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Any JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema(Value),
    /// A text that a regular expression matches as a whole.
    Regex(String),
    /// One of some texts.
    Choice(Vec<String>),
    /// A text of a context-free grammar in llguidance's dialect of Lark.
    Lark(String),
}

/// Blanks between the tokens of JSON: one, or a line end and an indentation. Without a bound, a model
/// that is at a loss writes blanks until its tokens are used up.
const BLANKS: &str = r"\x20|\r?\n[\x20\t]{0,40}";

fn json_answer(schema: Value) -> GrammarWithLexer {
    GrammarWithLexer::from_json_schema(with_bounded_blanks(schema))
}

/// A schema with what the library reads its own options from; the client's own go first.
pub(super) fn with_bounded_blanks(schema: Value) -> Value {
    let mut schema = if schema == Value::Bool(true) { json!({}) } else { schema };
    if let Value::Object(object) = &mut schema {
        let options = object.entry("x-guidance").or_insert_with(|| json!({}));
        if let Value::Object(options) = options {
            options.entry("whitespace_pattern").or_insert_with(|| BLANKS.into());
        }
    }
    schema
}

impl Form {
    /// As the library reads it.
    pub(super) fn answer(&self) -> GrammarWithLexer {
        match self {
            Self::JsonObject => json_answer(json!({ "type": "object" })),
            Self::JsonSchema(schema) => json_answer(schema.clone()),
            Self::Regex(pattern) => GrammarWithLexer::from_regex(pattern),
            Self::Choice(texts) => {
                // Strings of Lark are spelled as those of JSON.
                let texts: Vec<_> = texts.iter().map(|text| json!(text).to_string()).collect();
                GrammarWithLexer::from_lark(format!("start: {}", texts.join(" | ")))
            }
            Self::Lark(grammar) => GrammarWithLexer::from_lark(grammar.clone()),
        }
    }
}
