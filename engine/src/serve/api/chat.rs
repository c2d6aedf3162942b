//! `POST /v1/chat/completions`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::body::read_object;
use super::call_field::{CallField, CallRules};
use super::chat_reply::{stream, whole_reply};
use super::error::ApiError;
use super::fields::Fields;
use super::form::{self, FormField};
use super::messages::take_messages;
use super::picture_field::{self, PictureField};
use super::sampling::ReplyFields;
use super::thinking::take_thinking;
use super::tools::take_tools;
use super::{logprobs, unsupported};
use crate::exec::PromptPicture;
use crate::serve::admission::Permit;
use crate::serve::answer::TextReader;
use crate::serve::app::{App, Origin, Submission};
use crate::serve::caller::Caller;
use crate::serve::sse;
use crate::text::{Conversation, ParseOptions, Prompt, ReplyStart, SamplingRequest};

/// What the prompt comes from.
const PROMPT_FIELD: &str = "messages";

/// A chat request that was read.
pub(super) struct ChatRequest {
    pub(super) conversation: Conversation,
    pub(super) pictures: Vec<PictureField>,
    pub(super) form: Option<FormField>,
    pub(super) rules: CallRules,
    pub(super) reply: ReplyFields,
}

/// A chat request whose prompt was tokenised.
pub(super) struct PreparedChat {
    pub(super) submission: Submission,
    /// How its reply is read.
    pub(super) options: ParseOptions,
    pub(super) reply: ReplyFields,
    pub(super) permit: Permit,
}

/// A chat request as a prompt that may fit.
struct RenderedChat {
    prompt: Prompt,
    options: ParseOptions,
    /// Tokens of a reply when the request says nothing.
    open_limit: u64,
}

/// Answers a chat request.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.check_open()?;
    let prepared = read_object(&app, &headers, body, |app, fields, caller| {
        prepare(app, read(app, fields)?, caller)
    });
    let prepared = prepared.await?;
    let PreparedChat { submission, options, reply, permit } = prepared;
    let max_tokens = submission.reported_limit;
    let reader = || TextReader::chat(options.clone());
    let origin = Origin { peer, endpoint: "/v1/chat/completions" };
    let answers = app.start(origin, vec![submission], reply.replies, reader, permit).await?;
    let response = if reply.stream {
        let chunks = stream(&answers, &app, reply.usage);
        sse::respond(answers, chunks, app.options.ping_interval)
    } else {
        whole_reply(answers, &app).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

pub(super) fn read(app: &App, mut fields: Fields) -> Result<ChatRequest, ApiError> {
    app.check_model(fields.text("model")?.as_deref())?;
    let (messages, pictures) = take_messages(&mut fields)?;
    let (tools, tool_choice, rules) = take_tools(&mut fields)?;
    let (thinking, effort) = take_thinking(&mut fields)?;
    let (response_format, form) = FormField::take_chat(&mut fields)?;
    let mut reply = ReplyFields::take(&mut fields, app.vocabulary())?;
    logprobs::take_chat(&mut fields, &mut reply.sampling)?;
    fields.finish_knowing(unsupported::chat_field)?;
    let conversation = Conversation {
        tools,
        tool_choice,
        thinking,
        effort,
        response_format,
        ..Conversation::new(messages)
    };
    Ok(ChatRequest { conversation, pictures, form, rules, reply })
}

/// Takes the places of a request, decodes its pictures and tokenises its prompt.
///
/// # Errors
/// What is wrong with the request, its conversation or a picture, or finds no place.
pub(super) fn prepare(
    app: &App,
    request: ChatRequest,
    caller: &Caller,
) -> Result<PreparedChat, ApiError> {
    let ChatRequest { conversation, pictures, form, rules, mut reply } = request;
    let mut permit = app.admit(reply.replies)?;
    let RenderedChat { prompt, options, open_limit } = render(app, &conversation, &reply)?;
    app.wait_with(&mut permit, prompt.least_tokens(&app.model.tokenizer).least())?;
    let calls = CallField::new(&conversation, &rules, &options, form.is_some());
    drop(conversation);
    caller.check_waiting()?;
    let reasons =
        matches!(options.start, ReplyStart::Reasoning | ReplyStart::ReasoningContinuation);
    reply.form = form::compile(app, form.as_ref(), calls.as_ref(), reasons)?;
    let pictures = picture_field::prepare(app, pictures, caller)?;
    permit.keep(pictures.room);
    // Without pictures there is nothing for the id to stand for.
    let image_token_id = app.model.pictures.map_or(0, |pictures| pictures.image_token_id);
    let go_on = || caller.check_waiting();
    let prompt = prompt.encode_while(&app.model.tokenizer, image_token_id, go_on)?;
    let prompt = PromptPicture::place(&prompt, &pictures.inputs);
    let limits = (reply.max_tokens, open_limit);
    let submission = app.submission(PROMPT_FIELD, prompt, limits, &reply)?;
    app.wait_with(&mut permit, submission.prompt_tokens())?;
    Ok(PreparedChat { submission, options, reply, permit })
}

/// Renders the prompt.
///
/// # Errors
/// What is wrong with the conversation; 400 when the prompt surely has more tokens than fit.
fn render(
    app: &App,
    conversation: &Conversation,
    reply: &ReplyFields,
) -> Result<RenderedChat, ApiError> {
    let prompt = conversation.prompt()?;
    app.room(PROMPT_FIELD, prompt.least_tokens(&app.model.tokenizer))?;
    let options = conversation.parse_options(&prompt, reply.stop.clone());
    let open_limit = SamplingRequest::default()
        .resolve(conversation.thinking, conversation.effort, u64::MAX)
        .max_tokens;
    Ok(RenderedChat { prompt, options, open_limit })
}
