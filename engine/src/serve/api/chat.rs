//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::OwnedSemaphorePermit;

use super::body::read_object;
use super::chat_reply::{stream, whole_reply};
use super::error::ApiError;
use super::fields::Fields;
use super::messages::take_messages;
use super::picture_field::{self, PictureField};
use super::sampling::ReplyFields;
use super::thinking::take_thinking;
use super::tools::take_tools;
use super::{logprobs, unsupported};
use crate::exec::PromptPicture;
use crate::serve::answer::TextReader;
use crate::serve::app::{App, Submission};
use crate::serve::blocking::blocking;
use crate::serve::body_room::HeldRoom;
use crate::serve::pictures::PreparedPictures;
use crate::serve::sse;
use crate::text::{Conversation, ParseOptions, Prompt, SamplingRequest};

/// What the prompt comes from.
const PROMPT_FIELD: &str = "messages";

/// A chat request that was read.
struct ChatRequest {
    conversation: Conversation,
    pictures: Vec<PictureField>,
    reply: ReplyFields,
    /// What its body takes.
    room: HeldRoom,
}

/// A chat request as a prompt that may fit.
struct RenderedChat {
    prompt: Prompt,
    pictures: PreparedPictures,
    options: ParseOptions,
    /// Tokens of a reply when the request says nothing.
    open_limit: u64,
    reply: ReplyFields,
    _room: HeldRoom,
}

/// Answers a chat request.
pub(in crate::serve) async fn answer(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.check_open()?;
    let (mut fields, room) = read_object(&app, &headers, body).await?;
    app.check_model(fields.text("model")?.as_deref())?;
    let request = read(fields, app.vocabulary(), room)?;
    let replies = request.reply.replies;
    let mut permit = app.admit(replies)?;
    let (streamed, include_usage) = (request.reply.stream, request.reply.include_usage);
    let prepared = Arc::clone(&app);
    // Both take a while when the prompt is long; other requests go on meanwhile.
    let rendered = blocking(move || render(&prepared, request)).await?;
    let (prepared, text_bytes) = (Arc::clone(&app), rendered.prompt.text_bytes());
    let encode = move || encode(&prepared, rendered);
    let (submission, options, room) = app.long_texts.run(text_bytes, encode).await?;
    permit.keep(room);
    let max_tokens = submission.reported_limit;
    let reader = || TextReader::chat(options.clone());
    let answers = app.start(vec![submission], replies, reader, permit).await?;
    let response = if streamed {
        sse::respond(stream(answers, &app, include_usage), app.options.ping_interval)
    } else {
        whole_reply(answers, &app).await?
    };
    Ok(app.with_limit_header(response, max_tokens))
}

fn read(mut fields: Fields, vocabulary: u32, room: HeldRoom) -> Result<ChatRequest, ApiError> {
    let (messages, pictures) = take_messages(&mut fields)?;
    let (tools, tool_choice) = take_tools(&mut fields)?;
    let (thinking, effort) = take_thinking(&mut fields)?;
    take_response_format(&mut fields)?;
    let mut reply = ReplyFields::take(&mut fields, vocabulary)?;
    reply.sampling.log_probs = logprobs::take_chat(&mut fields)?;
    fields.finish_knowing(unsupported::chat_field)?;
    let conversation =
        Conversation { tools, tool_choice, thinking, effort, ..Conversation::new(messages) };
    Ok(ChatRequest { conversation, pictures, reply, room })
}

/// Takes `response_format`, of which only text is possible.
fn take_response_format(fields: &mut Fields) -> Result<(), ApiError> {
    let Some(mut format) = fields.object("response_format")? else { return Ok(()) };
    let kind = format.required_text("type")?;
    if kind != "text" {
        return Err(ApiError::unsupported(
            "response_format",
            format!("{kind:?} is not supported, answers are not held to a form; use \"text\""),
        ));
    }
    format.finish()
}

/// Renders the prompt and decodes its pictures.
///
/// # Errors
/// What is wrong with the conversation or a picture; 400 when the prompt surely has more tokens
/// than fit.
fn render(app: &App, request: ChatRequest) -> Result<RenderedChat, ApiError> {
    let ChatRequest { conversation, pictures, reply, room } = request;
    let prompt = conversation.prompt()?;
    app.room(PROMPT_FIELD, prompt.least_tokens(&app.model.tokenizer))?;
    let options = conversation.parse_options(&prompt, reply.stop.clone());
    let open_limit = SamplingRequest::default()
        .resolve(conversation.thinking, conversation.effort, u64::MAX)
        .max_tokens;
    let pictures = picture_field::prepare(app, &pictures)?;
    Ok(RenderedChat { prompt, pictures, options, open_limit, reply, _room: room })
}

/// What a request needs before the engine can have it: the job, how its reply is read, and the
/// memory of its pictures.
type Prepared = (Submission, ParseOptions, Vec<OwnedSemaphorePermit>);

/// Encodes the prompt, pictures included.
fn encode(app: &App, rendered: RenderedChat) -> Result<Prepared, ApiError> {
    let RenderedChat { prompt, pictures, options, open_limit, reply, _room } = rendered;
    // Without pictures there is nothing for the id to stand for.
    let image_token_id = app.model.pictures.map(|pictures| pictures.image_token_id);
    let prompt = prompt.encode(&app.model.tokenizer, image_token_id.unwrap_or_default())?;
    let prompt = PromptPicture::place(&prompt, &pictures.inputs);
    let limits = (reply.max_tokens, open_limit);
    let submission = app.submission(PROMPT_FIELD, prompt, limits, &reply)?;
    Ok((submission, options, pictures.room))
}
