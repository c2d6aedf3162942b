//! What every request handler shares.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use tokio::sync::watch;

use super::admission::{Admission, Permit};
use super::answer::{Answer, TextReader};
use super::answers::Answers;
use super::api::error::ApiError;
use super::api::sampling::ReplyFields;
use super::body_room::BodyRoom;
use super::job::{Failure, Job};
use super::large_bodies::LargeBodies;
use super::mailbox::EngineHandle;
use super::metrics::Tally;
use super::options::ServerOptions;
use super::pictures::PictureRoom;
use super::usage::Usage;
use crate::exec::{ClientId, PromptPicture};
use crate::grammar::{GrammarError, Grammars};
use crate::sample::Draws;
use crate::text::{TokenCount, Tokenizer};
use crate::vision::PictureLimits;

/// Names the token limit that holds when a request asked for more than fits.
const LIMIT_HEADER: HeaderName = HeaderName::from_static("tandem-max-tokens");

/// The text side of the served model.
#[derive(Clone, Debug)]
pub struct ServedModel {
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// What it takes to place a picture; `None` for a model without pictures.
    pub pictures: Option<ServedPictures>,
}

/// How pictures become part of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct ServedPictures {
    /// The token at every position of a picture.
    pub image_token_id: u32,
    /// What they may measure.
    pub limits: PictureLimits,
}

/// Shared by all handlers.
pub(super) struct App {
    pub(super) engine: EngineHandle,
    pub(super) model: ServedModel,
    pub(super) options: ServerOptions,
    pub(super) admission: Admission,
    pub(super) bodies: BodyRoom,
    pub(super) large_bodies: LargeBodies,
    pub(super) pictures: PictureRoom,
    /// Seconds since 1970 when the server started.
    pub(super) created: u64,
    is_draining: watch::Sender<bool>,
    /// Made for the first request that wants a form.
    grammars: OnceLock<Result<Grammars, GrammarError>>,
}

/// Where a request came from, and to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Whoever sent it.
    pub(super) peer: SocketAddr,
    /// The path.
    pub(super) endpoint: &'static str,
}

/// A job that fits the context.
#[derive(Debug)]
pub(super) struct Submission {
    job: Job,
    /// The limit that holds, when the request asked for more.
    pub(super) reported_limit: Option<u64>,
}

impl Submission {
    /// Tokens of its prompt.
    pub(super) fn prompt_tokens(&self) -> u64 {
        self.job.prompt.len() as u64
    }

    /// The ids of its prompt.
    pub(super) fn into_prompt(self) -> Vec<u32> {
        self.job.prompt
    }
}

impl App {
    pub(super) fn new(engine: EngineHandle, model: ServedModel, options: ServerOptions) -> Self {
        let running = engine.limits().max_sequences;
        let admission = Admission::new(
            running.saturating_add(options.max_queued_requests),
            options.max_queued_tokens,
        );
        let created = super::stamp::now_seconds();
        engine.meters().name_build(&options.served_model_name, &options.numerics);
        engine.meters().tell_memory(&options.memory);
        engine.meters().tell_kernels(&options.kernels);
        Self {
            admission,
            bodies: BodyRoom::new(&options.body),
            large_bodies: LargeBodies::new(options.large_body_bytes),
            pictures: PictureRoom::new(options.pictures),
            created,
            is_draining: watch::Sender::new(false),
            grammars: OnceLock::new(),
            engine,
            model,
            options,
        }
    }

    /// Ids of the vocabulary.
    pub(super) fn vocabulary(&self) -> u32 {
        self.engine.limits().vocabulary
    }

    /// What compiles forms.
    ///
    /// # Errors
    /// Why there is nothing that does.
    pub(super) fn grammars(&self) -> Result<&Grammars, GrammarError> {
        let make = || Grammars::new(&self.model.tokenizer, self.vocabulary());
        self.grammars.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// Refuses new work from now on.
    pub(super) fn close(&self) {
        self.is_draining.send_replace(true);
    }

    /// Returns when new work is refused.
    pub(super) async fn closed(&self) {
        // It lives as long as its sender, which is borrowed here.
        let _ = self.is_draining.subscribe().wait_for(|is_draining| *is_draining).await;
    }

    /// # Errors
    /// 503 when new work is not taken.
    pub(super) fn check_open(&self) -> Result<(), ApiError> {
        if !self.engine.is_alive() {
            return Err(Failure::EngineStopped.into());
        }
        if *self.is_draining.borrow() {
            return Err(Failure::ShutDown.into());
        }
        if !self.engine.is_open() {
            return Err(Failure::DeviceReopening("the device was lost".to_owned()).into());
        }
        Ok(())
    }

    /// A request may leave the model open.
    ///
    /// # Errors
    /// 404 for another name than the served one.
    pub(super) fn check_model(&self, name: Option<&str>) -> Result<(), ApiError> {
        let served = &self.options.served_model_name;
        match name {
            Some(name) if name != served => Err(ApiError::model_not_found(name, served)),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// 400 for more replies than there could ever be, 429 when too many are under way, 503 when the
    /// server closed meanwhile.
    pub(super) fn admit(&self, replies: usize) -> Result<Permit, ApiError> {
        let most = self.admission.total();
        let Some(replies) = u32::try_from(replies).ok().filter(|&replies| replies <= most) else {
            let problem =
                format!("{replies} replies at once, there is room for {most}; ask for fewer");
            return Err(ApiError::invalid("n", problem));
        };
        let permit = self.admission.admit(replies).ok_or_else(|| self.overloaded())?;
        // Again, behind the permit: whoever closes the server first closes it and then waits for
        // the permits.
        self.check_open()?;
        Ok(permit)
    }

    /// The error of a request for which there is no room now.
    pub(super) fn overloaded(&self) -> ApiError {
        let retry_after_seconds = self.admission.retry_after_seconds();
        ApiError::overloaded("too many requests are under way", retry_after_seconds)
    }

    /// Counts the prompts of a request among the tokens that wait: before they are tokenised by what their length alone
    /// tells, and then by what they are.
    ///
    /// # Errors
    /// 429 when too many wait.
    pub(super) fn wait_with(&self, permit: &mut Permit, tokens: u64) -> Result<(), ApiError> {
        if permit.wait_with(tokens) {
            return Ok(());
        }
        let retry_after_seconds = self.admission.retry_after_seconds();
        Err(ApiError::overloaded("too many tokens of prompts wait", retry_after_seconds))
    }

    /// Tokens that the context has left behind a prompt, at least 1.
    ///
    /// # Errors
    /// 400 when there is no room for a reply. `field` is what the prompt came from.
    pub(super) fn room(&self, field: &str, prompt_tokens: TokenCount) -> Result<u64, ApiError> {
        let context_tokens = self.engine.limits().context_tokens;
        match context_tokens.saturating_sub(prompt_tokens.least()) {
            0 => Err(ApiError::context_length(field, prompt_tokens, context_tokens)),
            room => Ok(room),
        }
    }

    /// A job for a prompt. `field` is what the prompt came from, `limits` are the token limit that
    /// was asked for and the one of a request that asks for none; both are lowered to what the
    /// context has left.
    ///
    /// # Errors
    /// 400 when the context has no room for a reply.
    pub(super) fn submission(
        &self,
        field: &str,
        (prompt, pictures): (Vec<u32>, Vec<PromptPicture>),
        (asked, open): (Option<u64>, u64),
        reply: &ReplyFields,
    ) -> Result<Submission, ApiError> {
        let room = self.room(field, TokenCount::Exactly(prompt.len() as u64))?;
        let max_tokens = asked.unwrap_or(open).min(room);
        let reported_limit = asked.filter(|&asked| asked > max_tokens).map(|_| max_tokens);
        let (sampling, stop_ids) = (reply.sampling.clone(), reply.stop_ids.clone());
        let cache_salt = reply.cache_salt.clone();
        let client = ClientId::default();
        let (form, drafts) = (reply.form.clone(), reply.drafts);
        let job = Job {
            client,
            prompt,
            pictures,
            form,
            stop_ids,
            max_tokens,
            drafts,
            cache_salt,
            sampling,
        };
        Ok(Submission { job, reported_limit })
    }

    /// Sends `replies` jobs for each prompt, on account of whoever sent them, and waits until the
    /// engine has taken them all.
    ///
    /// # Errors
    /// Why it did not; those that it took are cancelled.
    pub(super) async fn start(
        &self,
        Origin { peer, endpoint }: Origin,
        submissions: Vec<Submission>,
        replies: usize,
        reader: impl Fn() -> TextReader,
        mut permit: Permit,
    ) -> Result<Answers, ApiError> {
        let waiting = Arc::new(permit.take_waiting());
        let (admitted, permit) = (permit.since(), Arc::new(permit));
        let mut answers = Vec::new();
        for Submission { job, .. } in submissions {
            for reply in 0..replies as u64 {
                let mut job = job.clone();
                job.client = client(peer.ip());
                job.sampling.seed = job.sampling.seed.map(|seed| Draws::reply_seed(seed, reply));
                let usage = Usage {
                    prompt_tokens: job.prompt.len() as u64,
                    bounded_replay: self.engine.limits().bounded_replay,
                    ..Usage::default()
                };
                let generation = self.engine.submit(job, Arc::clone(&permit), Arc::clone(&waiting));
                let tokenizer = Arc::clone(&self.model.tokenizer);
                let (meters, reader) = (Arc::clone(self.engine.meters()), reader());
                let tally = Tally::new(meters, endpoint, admitted, reader.begins());
                answers.push(Answer::new(generation, reader, tokenizer, usage, tally));
            }
        }
        let mut answers = Answers::new(answers, replies);
        answers.accepted().await?;
        Ok(answers)
    }

    /// Says that the token limit was lowered, when it was.
    pub(super) fn with_limit_header(&self, mut response: Response, limit: Option<u64>) -> Response {
        if let Some(limit) = limit {
            response.headers_mut().insert(LIMIT_HEADER, HeaderValue::from(limit));
        }
        response
    }
}

/// Whom an address stands for: itself or, of IPv6, its network, since one client has all of that.
fn client(address: IpAddr) -> ClientId {
    match address.to_canonical() {
        IpAddr::V4(address) => ClientId(u64::from(address.to_bits())),
        IpAddr::V6(address) => ClientId((address.to_bits() >> 64) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network() {
        let of = |address: &str| client(address.parse().unwrap());
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
    }
}
