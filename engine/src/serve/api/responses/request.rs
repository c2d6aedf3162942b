//! Fields of a request besides its input.

use serde_json::{Map, Value};

use super::input::take_input;
use crate::sample::SamplingParameters;
use crate::serve::api::chat::ChatRequest;
use crate::serve::api::error::ApiError;
use crate::serve::api::fields::{Fields, wrong_type};
use crate::serve::api::form::FormField;
use crate::serve::api::logprobs;
use crate::serve::api::sampling::{ANY_LIMIT, ReplyFields, take_labels};
use crate::serve::api::thinking::take_reasoning;
use crate::serve::api::tools::take_functions;
use crate::serve::app::App;
use crate::text::Conversation;

/// What a response repeats of its request.
const ECHOED: [&str; 11] = [
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
];

/// What `include` may name.
const ENCRYPTED: &str = "reasoning.encrypted_content";
const LOG_PROBS: &str = "message.output_text.logprobs";

/// A request that was read.
pub(super) struct ResponseRequest {
    pub(super) chat: ChatRequest,
    pub(super) echo: Map<String, Value>,
    /// Reasoning is repeated in `encrypted_content`.
    pub(super) encrypted: bool,
}

/// Reads a request.
pub(super) fn read(app: &App, fields: Fields) -> Result<ResponseRequest, ApiError> {
    read_fields(app, fields).map_err(renamed)
}

/// An error of what a chat request shares, in the names that a response has for it.
pub(super) fn renamed(error: ApiError) -> ApiError {
    [
        ("messages", "input"),
        ("response_format", "text.format"),
        ("reasoning_effort", "reasoning.effort"),
    ]
    .into_iter()
    .fold(error, |error, (from, to)| error.renamed(from, to))
}

fn read_fields(app: &App, mut fields: Fields) -> Result<ResponseRequest, ApiError> {
    let echoed = |name: &str| Some((name.to_owned(), fields.peek(name)?.clone()));
    let echo = ECHOED.into_iter().filter_map(echoed).collect();
    app.check_model(fields.text("model")?.as_deref())?;
    let (messages, pictures) = take_input(&mut fields)?;
    let (tools, tool_choice, rules) = take_functions(&mut fields)?;
    let (thinking, effort) = take_reasoning(&mut fields)?;
    let (response_format, form) = FormField::take_text(&mut fields)?;
    let Included { encrypted, log_probs } = include(&mut fields)?;
    let mut reply = reply(&mut fields)?;
    logprobs::take_response(&mut fields, &mut reply.sampling, log_probs)?;
    if fields.boolean("background")? == Some(true) {
        let problem = "a response comes with the answer to its request; leave it out";
        return Err(ApiError::unsupported("background", problem));
    }
    if fields.text("truncation")?.is_some_and(|kind| kind != "disabled") {
        let problem = "nothing is left out of the input; send what fits";
        return Err(ApiError::unsupported("truncation", problem));
    }
    fields.finish_knowing(unsupported)?;
    let conversation = Conversation {
        tools,
        tool_choice,
        thinking,
        effort,
        response_format,
        ..Conversation::new(messages)
    };
    let chat = ChatRequest { conversation, pictures, form, rules, reply };
    Ok(ResponseRequest { chat, echo, encrypted })
}

#[expect(clippy::cast_possible_truncation, reason = "samplers take f32; ranges are checked before")]
fn reply(fields: &mut Fields) -> Result<ReplyFields, ApiError> {
    let max_tokens = fields.integer("max_output_tokens", 1..=ANY_LIMIT)?;
    let temperature = fields.number("temperature", 0.0..=2.0)?.unwrap_or(1.0) as f32;
    let top_p = fields.number("top_p", 0.0..=1.0)?.unwrap_or(1.0) as f32;
    let stream = fields.boolean("stream")?.unwrap_or(false);
    if let Some(mut options) = fields.object("stream_options")? {
        if options.boolean("include_obfuscation")? == Some(true) {
            let problem = "events are not padded; send false or leave it out";
            return Err(ApiError::unsupported(&options.path("include_obfuscation"), problem));
        }
        options.finish()?;
    }
    take_labels(fields)?;
    Ok(ReplyFields {
        max_tokens: max_tokens.map(|limit| u64::try_from(limit).unwrap_or(u64::MAX)),
        sampling: SamplingParameters {
            temperature,
            // 0 keeps the most likely token, as any share does that it covers alone.
            top_p: top_p.max(f32::MIN_POSITIVE),
            ..SamplingParameters::default()
        },
        stream,
        ..ReplyFields::default()
    })
}

/// What a request wants besides.
#[derive(Default)]
struct Included {
    /// What reasoning can be sent back as.
    encrypted: bool,
    /// Log-probabilities of the text.
    log_probs: bool,
}

/// Takes `include`.
fn include(fields: &mut Fields) -> Result<Included, ApiError> {
    let mut included = Included::default();
    for (index, value) in fields.list("include")?.unwrap_or_default().into_iter().enumerate() {
        let path = format!("include[{index}]");
        match value {
            Value::String(name) if name == ENCRYPTED => included.encrypted = true,
            Value::String(name) if name == LOG_PROBS => included.log_probs = true,
            Value::String(name) => {
                let problem = format!("{name:?} is not supported; {ENCRYPTED} and {LOG_PROBS} are");
                return Err(ApiError::unsupported(&path, problem));
            }
            other => return Err(wrong_type(&path, "a string", &other)),
        }
    }
    Ok(included)
}

/// Why a field is not supported, when it is known.
fn unsupported(name: &str) -> Option<&'static str> {
    match name {
        "previous_response_id" => {
            Some("responses are not stored; send the earlier items in input instead")
        }
        "conversation" | "prompt" => Some("nothing is stored here; send it in input"),
        "max_tool_calls" => Some("the server runs no tools; leave it out"),
        "service_tier" => Some("there is one tier; leave it out"),
        "context_management" => Some("the server keeps nothing; send what the model is to read"),
        "moderation" => Some("nothing is moderated here; leave it out"),
        "prompt_cache_retention" | "prompt_cache_options" => {
            Some("prompts are cached as long as there is room; leave it out")
        }
        "messages" | "max_tokens" | "max_completion_tokens" | "response_format" | "stop" | "n" => {
            Some("a field of /v1/chat/completions")
        }
        _ => None,
    }
}
