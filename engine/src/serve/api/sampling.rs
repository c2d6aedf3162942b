//! Fields that chat and completions share: how tokens are chosen and when the reply ends.
//!
//! A value that the client sends is used as it is; the hosted model's defaults fill in only what
//! the client leaves open. Both spellings of the token limit are taken, and must agree when both
//! are given. A limit beyond what the context has left is lowered to it: the reply then ends with
//! finish reason `length`, and the header `tandem-max-tokens` names the limit that holds.

use serde_json::Value;

use super::chunks::StreamUsage;
use super::error::ApiError;
use super::fields::{Fields, wrong_type};
use crate::grammar::Grammar;
use crate::sample::SamplingParameters;

/// Most stop strings of a request.
const MAX_STOPS: usize = 16;

/// Most tokens that a request may ask for; larger values mean the same.
pub(super) const ANY_LIMIT: i128 = u64::MAX as i128;

/// Most replies of a request, over all its prompts.
pub(super) const MAX_REPLIES: usize = 128;

/// Most stop ids of a request.
const MAX_STOP_IDS: usize = 128;

/// What a request says about its replies besides the text.
#[derive(Clone, Debug)]
pub(in crate::serve) struct ReplyFields {
    /// Replies to each prompt.
    pub(super) replies: usize,
    /// Limit as asked for.
    pub(super) max_tokens: Option<u64>,
    pub(in crate::serve) sampling: SamplingParameters,
    pub(super) stop: Vec<String>,
    /// Ids that end a reply and are not shown.
    pub(in crate::serve) stop_ids: Vec<u32>,
    /// What the replies are held to; compiled after the prompt is known to be sound.
    pub(in crate::serve) form: Option<Grammar>,
    pub(super) stream: bool,
    pub(super) usage: StreamUsage,
    /// Whether tokens may be drafted, which changes how fast a reply comes and not what is likely in it.
    pub(in crate::serve) drafts: bool,
    /// Only requests of equal salt share cached prefixes.
    pub(in crate::serve) cache_salt: String,
}

impl Default for ReplyFields {
    /// One reply with all that the hosted model does when nothing is said.
    fn default() -> Self {
        Self {
            replies: 1,
            max_tokens: None,
            sampling: SamplingParameters { temperature: 1.0, ..SamplingParameters::default() },
            stop: Vec::new(),
            stop_ids: Vec::new(),
            form: None,
            stream: false,
            usage: StreamUsage::No,
            drafts: true,
            cache_salt: String::new(),
        }
    }
}

impl ReplyFields {
    /// Takes the shared fields.
    pub(super) fn take(fields: &mut Fields, vocabulary: u32) -> Result<Self, ApiError> {
        let replies = fields.integer("n", 1..=MAX_REPLIES as i128)?.unwrap_or(1) as usize;
        let max_tokens = max_tokens(fields)?;
        let sampling = sampling(fields, vocabulary)?;
        let stop = Self::take_stops(fields, "stop")?;
        let stop_ids = stop_ids(fields, vocabulary)?;
        let stream = fields.boolean("stream")?.unwrap_or(false);
        let usage = match fields.object("stream_options")? {
            None => StreamUsage::No,
            Some(options) if stream => take_usage(options)?,
            Some(_) => {
                return Err(ApiError::invalid("stream_options", "only with \"stream\": true"));
            }
        };
        let drafts = fields.boolean("drafts")?.unwrap_or(true);
        let cache_salt = fields.text("cache_salt")?.unwrap_or_default();
        take_labels(fields)?;
        Ok(Self {
            replies,
            max_tokens,
            sampling,
            stop,
            stop_ids,
            form: None,
            stream,
            usage,
            drafts,
            cache_salt,
        })
    }

    /// Takes the stop strings, one or a list.
    pub(super) fn take_stops(fields: &mut Fields, name: &str) -> Result<Vec<String>, ApiError> {
        let values = match fields.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(one) => vec![one],
        };
        if values.len() > MAX_STOPS {
            let problem = format!("{} strings, at most {MAX_STOPS} are supported", values.len());
            return Err(ApiError::invalid(name, problem));
        }
        values
            .into_iter()
            .map(|value| match value {
                Value::String(text) if text.is_empty() => Err(ApiError::invalid(
                    name,
                    "an empty string would stop every reply; remove it",
                )),
                Value::String(text) => Ok(text),
                other => Err(wrong_type(name, "a string or an array of strings", &other)),
            })
            .collect()
    }
}

fn take_usage(mut options: Fields) -> Result<StreamUsage, ApiError> {
    let last = options.boolean("include_usage")?.unwrap_or(false);
    let each = options.boolean("continuous_usage_stats")?.unwrap_or(false);
    let usage = match (last, each) {
        (true, true) => StreamUsage::Each,
        (true, false) => StreamUsage::Last,
        (false, false) => StreamUsage::No,
        (false, true) => {
            let field = options.path("continuous_usage_stats");
            return Err(ApiError::invalid(&field, "only with \"include_usage\": true"));
        }
    };
    options.finish()?;
    Ok(usage)
}

/// Fields that only label a request; they change nothing about the answer.
pub(super) fn take_labels(fields: &mut Fields) -> Result<(), ApiError> {
    for name in ["user", "safety_identifier", "prompt_cache_key"] {
        fields.text(name)?;
    }
    fields.object("metadata")?;
    if fields.boolean("store")? == Some(true) {
        return Err(ApiError::unsupported("store", "nothing is stored here; leave it out"));
    }
    Ok(())
}

fn max_tokens(fields: &mut Fields) -> Result<Option<u64>, ApiError> {
    let mut limits = Vec::new();
    for name in ["max_tokens", "max_completion_tokens"] {
        limits.extend(fields.integer(name, 1..=ANY_LIMIT)?);
    }
    if let [first, second] = limits[..]
        && first != second
    {
        return Err(ApiError::invalid(
            "max_completion_tokens",
            format!("{second} contradicts max_tokens {first}; send one of them"),
        ));
    }
    Ok(limits.first().map(|&limit| u64::try_from(limit).unwrap_or(u64::MAX)))
}

#[expect(clippy::cast_possible_truncation, reason = "samplers take f32; ranges are checked before")]
fn sampling(fields: &mut Fields, vocabulary: u32) -> Result<SamplingParameters, ApiError> {
    let mut number = |name, range, open: f64| {
        fields.number(name, range).map(|value| value.unwrap_or(open) as f32)
    };
    let temperature = number("temperature", 0.0..=2.0, 1.0)?;
    let top_p = number("top_p", 0.0..=1.0, 1.0)?;
    let min_p = number("min_p", 0.0..=1.0, 0.0)?;
    let presence_penalty = number("presence_penalty", -2.0..=2.0, 0.0)?;
    let frequency_penalty = number("frequency_penalty", -2.0..=2.0, 0.0)?;
    let repetition_penalty = number("repetition_penalty", 0.01..=2.0, 1.0)?;
    let top_k = fields.integer("top_k", -1..=ANY_LIMIT)?.unwrap_or(0);
    let seed = fields.word("seed")?;
    Ok(SamplingParameters {
        temperature,
        // 0 keeps the most likely token, as any share does that it covers alone.
        top_p: top_p.max(f32::MIN_POSITIVE),
        top_k: i64::try_from(top_k).unwrap_or(i64::MAX),
        min_p,
        seed,
        log_probs: None,
        raw_log_probs: false,
        presence_penalty,
        frequency_penalty,
        repetition_penalty,
        logit_bias: logit_bias(fields, vocabulary)?,
    })
}

fn logit_bias(fields: &mut Fields, vocabulary: u32) -> Result<Vec<(u32, f32)>, ApiError> {
    let Some(entries) = fields.object("logit_bias")? else { return Ok(Vec::new()) };
    let mut biases = Vec::new();
    for (name, value) in entries.into_entries() {
        let path = format!("logit_bias.{name}");
        // One spelling for each id, so that no id comes twice.
        let id = name.parse::<u32>().ok().filter(|&id| id < vocabulary && id.to_string() == name);
        let Some(id) = id else {
            return Err(ApiError::invalid(
                &path,
                format!("not a token id; ids are 0 to {}, in plain digits", vocabulary - 1),
            ));
        };
        let bias = value.as_f64().ok_or_else(|| wrong_type(&path, "a number", &value))?;
        if !(-100.0..=100.0).contains(&bias) {
            return Err(ApiError::invalid(&path, format!("{value} is not from -100 to 100")));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        biases.push((id, bias as f32));
    }
    Ok(biases)
}

fn stop_ids(fields: &mut Fields, vocabulary: u32) -> Result<Vec<u32>, ApiError> {
    let list = fields.list("stop_token_ids")?.unwrap_or_default();
    if list.len() > MAX_STOP_IDS {
        let problem = format!("{} ids, at most {MAX_STOP_IDS} are supported", list.len());
        return Err(ApiError::invalid("stop_token_ids", problem));
    }
    token_ids("stop_token_ids", &list, vocabulary)
}

/// The token ids of a list at `path`.
pub(super) fn token_ids(path: &str, list: &[Value], vocabulary: u32) -> Result<Vec<u32>, ApiError> {
    let id = |(index, id): (usize, &Value)| {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        id.filter(|&id| id < vocabulary).ok_or_else(|| {
            let problem = format!("not a token id; ids are 0 to {}", vocabulary - 1);
            ApiError::invalid(&format!("{path}[{index}]"), problem)
        })
    };
    list.iter().enumerate().map(id).collect()
}
