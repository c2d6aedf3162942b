//! `POST /v1/completions`: bare continuation of a text.
//!
//! A text begins with the token that begins every document, and is encoded without control tokens;
//! whoever needs those sends ids. The reply is what the model writes, control tokens spelled out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::read_object;
use super::chat_reply::finish_word;
use super::error::ApiError;
use super::fields::Fields;
use super::logprobs::{self, CompletionLogprobs};
use super::prompt_field::{PromptField, take_prompt};
use super::sampling::{ReplyFields, only_one};
use super::unsupported;
use crate::serve::answer::{Answer, Piece, TextReader};
use crate::serve::app::{App, Submission};
use crate::serve::sse::{self, Chunks, Frame};
use crate::serve::stamp::Stamp;
use crate::text::{ControlToken, Event, FinishReason, Tokenizer};

/// Tokens of a reply when the request says nothing, as the protocol has it.
const OPEN_LIMIT: u64 = 16;

/// A completion request that was read.
struct CompletionRequest {
    prompt: PromptField,
    reply: ReplyFields,
}

/// Answers a completion request.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.check_open()?;
    let mut fields = read_object(&headers, body, &app.options.body).await?;
    app.check_model(fields.text("model")?.as_deref())?;
    let request = read(fields, app.vocabulary())?;
    let permit = app.admit()?;
    let (stream, include_usage) = (request.reply.stream, request.reply.include_usage);
    let reader = TextReader::plain(&request.reply.stop);
    let prepared = Arc::clone(&app);
    let submission = app.blocking(move || prepare(&prepared, request)).await?;
    let max_tokens = submission.reported_limit;
    let answer = app.start(submission, reader, permit).await?;
    let response = if stream {
        let chunks = CompletionStream::new(answer, &app, include_usage);
        sse::respond(chunks, app.options.ping_interval)
    } else {
        whole_reply(answer, &app).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

fn read(mut fields: Fields, vocabulary: u32) -> Result<CompletionRequest, ApiError> {
    let prompt = take_prompt(&mut fields, vocabulary)?;
    if fields.boolean("echo")? == Some(true) {
        return Err(ApiError::unsupported("echo", "the prompt is not sent back; leave it out"));
    }
    only_one(&mut fields, "best_of")?;
    let mut reply = ReplyFields::take(&mut fields, vocabulary)?;
    reply.sampling.log_probs = logprobs::take_completion(&mut fields)?;
    fields.finish_knowing(unsupported::completion_field)?;
    Ok(CompletionRequest { prompt, reply })
}

fn prepare(app: &App, request: CompletionRequest) -> Result<Submission, ApiError> {
    let CompletionRequest { prompt, reply } = request;
    let ids = match prompt {
        PromptField::Ids(ids) => ids,
        PromptField::Text(text) => {
            let tokenizer = &app.model.tokenizer;
            let mut ids = vec![tokenizer.control_token(ControlToken::Bos)?];
            ids.extend(tokenizer.encode(&text)?);
            ids
        }
    };
    let limits = (reply.max_tokens, OPEN_LIMIT);
    app.submission("prompt", (ids, Vec::new()), limits, reply.sampling)
}

async fn whole_reply(mut answer: Answer, app: &App) -> Result<Response, ApiError> {
    let mut text = String::new();
    let mut finish = None;
    let mut logprobs = CompletionLogprobs::default();
    while let Some(piece) = answer.piece().await {
        let piece = piece?;
        if let Some(token) = &piece.token {
            logprobs.push(&app.model.tokenizer, token);
        }
        finish = take_text(piece, &mut text).or(finish);
    }
    let mut body = Stamp::new("cmpl", app).json("text_completion");
    body.insert("choices".to_owned(), choice(&text, logprobs.take().as_ref(), finish));
    body.insert("usage".to_owned(), answer.usage().json());
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

fn choice(text: &str, logprobs: Option<&Value>, finish: Option<FinishReason>) -> Value {
    json!([{
        "index": 0,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": finish.map(finish_word),
    }])
}

/// The chunks of a streamed completion.
struct CompletionStream {
    answer: Answer,
    stamp: Stamp,
    tokenizer: Arc<Tokenizer>,
    include_usage: bool,
    logprobs: CompletionLogprobs,
    ready: VecDeque<Frame>,
}

impl CompletionStream {
    fn new(answer: Answer, app: &App, include_usage: bool) -> Self {
        Self {
            answer,
            stamp: Stamp::new("cmpl", app),
            tokenizer: Arc::clone(&app.model.tokenizer),
            include_usage,
            logprobs: CompletionLogprobs::default(),
            ready: VecDeque::new(),
        }
    }

    fn queue(&mut self, choices: Value, usage: Value) {
        let mut body = self.stamp.json("text_completion");
        body.insert("choices".to_owned(), choices);
        if self.include_usage {
            body.insert("usage".to_owned(), usage);
        }
        self.ready.push_back(Frame::Data(body.into()));
    }

    fn queue_piece(&mut self, piece: Piece) {
        if let Some(token) = &piece.token {
            self.logprobs.push(&self.tokenizer, token);
        }
        let mut text = String::new();
        let finish = take_text(piece, &mut text);
        let logprobs = self.logprobs.take();
        if text.is_empty() && logprobs.is_none() && finish.is_none() {
            return;
        }
        self.queue(choice(&text, logprobs.as_ref(), finish), Value::Null);
        if finish.is_some() {
            if self.include_usage {
                let usage = self.answer.usage().json();
                self.queue(json!([]), usage);
            }
            self.ready.push_back(Frame::Done);
        }
    }
}

impl Chunks for CompletionStream {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(Some(frame));
            }
            match ready!(self.answer.poll_piece(context)) {
                None => return Poll::Ready(None),
                Some(Ok(piece)) => self.queue_piece(piece),
                Some(Err(failure)) => {
                    return Poll::Ready(Some(Frame::Data(ApiError::from(failure).json())));
                }
            }
        }
    }
}
