//! `POST /v1/completions`: bare continuation of a text.
//!
//! A text begins with the token that begins every document, and is encoded without control tokens;
//! whoever needs those sends ids. The reply is what the model writes, control tokens spelled out.
//! There may be several prompts, and several replies to each.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::read_object;
use super::chat_reply::finish_word;
use super::chunks::{AnswerChunks, Spelling, StreamUsage};
use super::error::ApiError;
use super::fields::Fields;
use super::form::{self, FormField};
use super::logprobs::{self, CompletionLogprobs};
use super::prompt_field::{PromptField, take_prompts};
use super::sampling::{MAX_REPLIES, ReplyFields};
use super::tokens::spelled;
use super::unsupported;
use crate::serve::admission::Permit;
use crate::serve::answer::{Piece, TextReader};
use crate::serve::answers::Answers;
use crate::serve::app::{App, Origin, Submission};
use crate::serve::caller::Caller;
use crate::serve::sse;
use crate::serve::stamp::Stamp;
use crate::text::{ControlToken, Event, FinishReason, TokenCount, Tokenizer};

/// Tokens of a reply when the request says nothing, as the protocol has it.
const OPEN_LIMIT: u64 = 16;

/// A completion request that was read.
struct CompletionRequest {
    /// Each with where it is in the body.
    prompts: Vec<(String, PromptField)>,
    /// Each text begins with its prompt.
    echo: bool,
    form: Option<FormField>,
    reply: ReplyFields,
}

/// A completion request whose prompts were tokenised.
struct PreparedCompletion {
    submissions: Vec<Submission>,
    /// The text that each prompt's replies begin with.
    echoes: Vec<String>,
    reply: ReplyFields,
    permit: Permit,
}

/// Answers a completion request. Choices are numbered prompt by prompt.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.check_open()?;
    let prepared = read_object(&app, &headers, body, prepare).await?;
    let PreparedCompletion { submissions, echoes, reply, permit } = prepared;
    let replies = reply.replies;
    let max_tokens = submissions.iter().filter_map(|submission| submission.reported_limit).min();
    let origin = Origin { peer, endpoint: "/v1/completions" };
    let answers =
        app.start(origin, submissions, replies, || TextReader::plain(&reply.stop), permit).await?;
    let starts: Vec<_> = echoes.into_iter().flat_map(|echo| vec![echo; replies]).collect();
    let response = if reply.stream {
        let chunks = stream(&starts, &app, (reply.usage, &answers));
        sse::respond(answers, chunks, app.options.ping_interval)
    } else {
        whole_reply(answers, starts, &app).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

fn read(app: &App, mut fields: Fields) -> Result<CompletionRequest, ApiError> {
    app.check_model(fields.text("model")?.as_deref())?;
    let vocabulary = app.vocabulary();
    let most = MAX_REPLIES.min(app.admission.total() as usize);
    let prompts = take_prompts(&mut fields, vocabulary, most)?;
    let echo = fields.boolean("echo")?.unwrap_or(false);
    let best_of = fields.integer("best_of", 1..=i128::from(u64::MAX))?;
    let mut reply = ReplyFields::take(&mut fields, vocabulary)?;
    if best_of.is_some_and(|best_of| best_of != reply.replies as i128) {
        let problem = "replies are not chosen among; send n alone";
        return Err(ApiError::unsupported("best_of", problem));
    }
    if prompts.len() * reply.replies > MAX_REPLIES {
        let (prompts, replies) = (prompts.len(), reply.replies);
        let problem = format!("{prompts} times n {replies} replies, at most {MAX_REPLIES}");
        return Err(ApiError::invalid("prompt", problem));
    }
    let form = FormField::take(&mut fields)?;
    logprobs::take_completion(&mut fields, &mut reply.sampling)?;
    if echo && reply.sampling.log_probs.is_some() {
        let problem = "not together with logprobs: those of a prompt are not computed";
        return Err(ApiError::unsupported("echo", problem));
    }
    fields.finish_knowing(unsupported::completion_field)?;
    Ok(CompletionRequest { prompts, echo, form, reply })
}

/// Reads the request, takes its places and tokenises its prompts.
///
/// # Errors
/// What is wrong with the request or finds no place; 400 when a text surely has more tokens than
/// fit: none is tokenised for that.
fn prepare(app: &App, fields: Fields, caller: &Caller) -> Result<PreparedCompletion, ApiError> {
    let CompletionRequest { prompts, echo, form, mut reply } = read(app, fields)?;
    let tokenizer = &app.model.tokenizer;
    let mut least_tokens = 0;
    for (path, prompt) in &prompts {
        let tokens = match prompt {
            PromptField::Text(text) => TokenCount::AtLeast(tokenizer.least_tokens(text)),
            PromptField::Ids(ids) => TokenCount::Exactly(ids.len() as u64),
        };
        app.room(path, tokens)?;
        least_tokens += tokens.least();
    }
    let mut permit = app.admit(prompts.len() * reply.replies)?;
    app.wait_with(&mut permit, least_tokens)?;
    reply.form = form::compile(app, form.as_ref(), None, false)?;
    let (mut submissions, mut echoes) = (Vec::new(), Vec::new());
    for (path, prompt) in prompts {
        caller.check_waiting()?;
        let (ids, text) = match prompt {
            PromptField::Ids(ids) => {
                let text = if echo { spelled(tokenizer, &ids) } else { String::new() };
                (ids, text)
            }
            PromptField::Text(text) => {
                let mut ids = vec![tokenizer.control_token(ControlToken::Bos)?];
                ids.extend(tokenizer.encode(&text)?);
                (ids, if echo { text } else { String::new() })
            }
        };
        let limits = (reply.max_tokens, OPEN_LIMIT);
        submissions.push(app.submission(&path, (ids, Vec::new()), limits, &reply)?);
        echoes.push(text);
    }
    app.wait_with(&mut permit, submissions.iter().map(Submission::prompt_tokens).sum())?;
    Ok(PreparedCompletion { submissions, echoes, reply, permit })
}

async fn whole_reply(
    mut answers: Answers,
    starts: Vec<String>,
    app: &App,
) -> Result<Response, ApiError> {
    let mut choices: Vec<_> =
        starts.into_iter().map(|text| (text, CompletionLogprobs::default(), None)).collect();
    while let Some(piece) = answers.piece().await {
        let (place, piece) = piece?;
        let (text, logprobs, finish) = &mut choices[place];
        if let Some(token) = &piece.token {
            logprobs.push(&app.model.tokenizer, token);
        }
        *finish = take_text(piece, text).or(*finish);
    }
    let choices: Vec<_> = choices
        .into_iter()
        .enumerate()
        .map(|(place, (text, mut logprobs, finish))| {
            choice(place, &text, logprobs.take().as_ref(), finish)
        })
        .collect();
    let mut body = Stamp::new("cmpl-", app).json("text_completion");
    body.insert("choices".to_owned(), choices.into());
    body.insert("usage".to_owned(), answers.usage().json());
    Ok(Json(body).into_response())
}

/// Appends the text of a piece; says why the reply is over when it is.
fn take_text(piece: Piece, text: &mut String) -> Option<FinishReason> {
    let mut finish = None;
    for event in piece.events {
        match event {
            Event::Content(more) => text.push_str(&more),
            Event::Finish(reason) => finish = Some(reason),
            _ => {}
        }
    }
    finish
}

fn choice(
    place: usize,
    text: &str,
    logprobs: Option<&Value>,
    finish: Option<FinishReason>,
) -> Value {
    json!({
        "index": place,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": finish.map(finish_word),
    })
}

/// The chunks of streamed completions; those with a start begin with it.
fn stream(
    starts: &[String],
    app: &App,
    usage: (StreamUsage, &Answers),
) -> AnswerChunks<CompletionSpelling> {
    let started = starts.iter().enumerate().filter(|(_, start)| !start.is_empty());
    let first: Vec<_> = started.map(|(place, start)| choice(place, start, None, None)).collect();
    let spelling = CompletionSpelling {
        tokenizer: Arc::clone(&app.model.tokenizer),
        logprobs: starts.iter().map(|_| CompletionLogprobs::default()).collect(),
    };
    AnswerChunks::new(Stamp::new("cmpl-", app), usage, spelling, first)
}

/// Completions by what each chunk adds to them.
struct CompletionSpelling {
    tokenizer: Arc<Tokenizer>,
    /// Of each choice.
    logprobs: Vec<CompletionLogprobs>,
}

impl Spelling for CompletionSpelling {
    const OBJECT: &str = "text_completion";

    fn choices(&mut self, place: usize, piece: Piece) -> Vec<Value> {
        if let Some(token) = &piece.token {
            self.logprobs[place].push(&self.tokenizer, token);
        }
        let mut text = String::new();
        let finish = take_text(piece, &mut text);
        let logprobs = self.logprobs[place].take();
        if text.is_empty() && logprobs.is_none() && finish.is_none() {
            return Vec::new();
        }
        vec![choice(place, &text, logprobs.as_ref(), finish)]
    }
}
