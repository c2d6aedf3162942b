//! The reply to one request as it grows: updates of the engine to text events.
//!
//! Streamed and whole replies are made of the same pieces, and tokens are read one by one however
//! many the engine commits at once, so both have the same text and the same counts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::generation::Generation;
use super::job::{End, Failure, GeneratedToken, Update};
use super::metrics::{Tally, TokenKind};
use super::usage::Usage;
use crate::text::{
    Event, FinishReason, GenerationEnd, ParseOptions, PlainStream, ReplyStart, ReplyStream,
    Tokenizer,
};

/// How the ids of the reply are read.
#[derive(Debug)]
pub(super) enum TextReader {
    /// With reasoning and tool calls.
    Chat(Box<ReplyStream>),
    /// As bare text.
    Plain(PlainStream),
}

impl TextReader {
    pub(super) fn chat(options: ParseOptions) -> Self {
        Self::Chat(Box::new(ReplyStream::new(options)))
    }

    pub(super) fn plain(stop: &[String]) -> Self {
        Self::Plain(PlainStream::new(stop))
    }

    /// What its first tokens are part of.
    pub(super) fn begins(&self) -> TokenKind {
        match self {
            Self::Chat(stream) => match stream.start() {
                ReplyStart::Reasoning | ReplyStart::ReasoningContinuation => TokenKind::Reasoning,
                ReplyStart::Content | ReplyStart::ContentContinuation => TokenKind::Content,
                ReplyStart::ToolCalls => TokenKind::Tool,
            },
            Self::Plain(_) => TokenKind::Content,
        }
    }

    fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Vec<Event> {
        match self {
            Self::Chat(stream) => stream.push(tokenizer, &[id]),
            Self::Plain(stream) => content(stream.push(tokenizer, &[id])),
        }
    }

    /// True when nothing that may follow is shown.
    fn is_complete(&self) -> bool {
        match self {
            Self::Chat(stream) => stream.is_discarding(),
            Self::Plain(stream) => stream.is_stopped(),
        }
    }

    /// The stop string that was reached.
    fn stop_string(&self) -> Option<&str> {
        match self {
            Self::Chat(stream) => stream.stop_string(),
            // Its protocol does not ask.
            Self::Plain(_) => None,
        }
    }

    fn finish(&mut self, end: GenerationEnd) -> Vec<Event> {
        match self {
            Self::Chat(stream) => stream.finish(end),
            Self::Plain(stream) => {
                let mut events = content(stream.finish());
                let stops = end == GenerationEnd::StopToken || stream.is_stopped();
                let reason = if stops { FinishReason::Stop } else { FinishReason::Length };
                events.push(Event::Finish(reason));
                events
            }
        }
    }
}

fn content(text: String) -> Vec<Event> {
    if text.is_empty() { Vec::new() } else { vec![Event::Content(text)] }
}

/// What one token, or the end, adds to a reply.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Text that is now certain.
    pub(super) events: Vec<Event>,
    /// The token; its text may come with a later piece.
    pub(super) token: Option<GeneratedToken>,
    /// The stop string that ended the reply.
    pub(super) stop: Option<String>,
}

/// A reply under way.
pub(super) struct Answer {
    generation: Generation,
    reader: TextReader,
    tokenizer: Arc<Tokenizer>,
    /// Tokens that came and are not read yet.
    unread: VecDeque<GeneratedToken>,
    end: Option<GenerationEnd>,
    is_over: bool,
    reasoning: String,
    usage: Usage,
    tally: Tally,
}

impl Answer {
    pub(super) fn new(
        generation: Generation,
        reader: TextReader,
        tokenizer: Arc<Tokenizer>,
        usage: Usage,
        tally: Tally,
    ) -> Self {
        Self {
            generation,
            reader,
            tokenizer,
            unread: VecDeque::new(),
            end: None,
            is_over: false,
            reasoning: String::new(),
            usage,
            tally,
        }
    }

    /// The request was refused after all.
    pub(super) fn forget(&mut self) {
        self.tally.forget();
    }

    /// Returns when the engine has taken the request.
    ///
    /// # Errors
    /// Why it did not.
    pub(super) async fn accepted(&mut self) -> Result<(), Failure> {
        match self.generation.update().await {
            Update::Failed(failure) => Err(failure),
            _ => Ok(()),
        }
    }

    /// The next piece; `None` after the one with [`Event::Finish`], and after a failure.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece, Failure>>> {
        loop {
            if self.is_over {
                return Poll::Ready(None);
            }
            if let Some(token) = self.unread.pop_front() {
                return Poll::Ready(Some(Ok(self.read(token))));
            }
            if let Some(end) = self.end {
                let mut piece = Piece::default();
                self.finish(end, &mut piece);
                return Poll::Ready(Some(Ok(piece)));
            }
            match ready!(self.generation.poll_update(context)) {
                Update::Accepted => {}
                Update::Started { cached_tokens } => self.usage.cached_tokens = cached_tokens,
                Update::Tokens(tokens) => self.unread.extend(tokens),
                Update::Ended(End::StopToken) => self.end = Some(GenerationEnd::StopToken),
                Update::Ended(End::Limit) => self.end = Some(GenerationEnd::Limit),
                Update::Failed(failure) => {
                    self.is_over = true;
                    self.tally.failed();
                    return Poll::Ready(Some(Err(failure)));
                }
            }
        }
    }

    /// Counts; complete after the last piece.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    fn read(&mut self, token: GeneratedToken) -> Piece {
        self.usage.completion_tokens += 1;
        self.usage.accepted_drafts += u64::from(token.drafts.accepted);
        self.usage.rejected_drafts += u64::from(token.drafts.rejected);
        let events = self.reader.push(&self.tokenizer, token.id);
        self.tally.token(&events);
        let mut piece = Piece { events, ..Piece::default() };
        piece.token = Some(token);
        self.note_reasoning(&piece.events);
        if self.reader.is_complete() {
            // Whatever the engine would still say is dropped: it need not say it.
            self.generation.cancel();
            self.finish(GenerationEnd::StopToken, &mut piece);
        }
        piece
    }

    fn finish(&mut self, end: GenerationEnd, piece: &mut Piece) {
        let events = self.reader.finish(end);
        self.note_reasoning(&events);
        piece.events.extend(events);
        piece.stop = self.reader.stop_string().map(str::to_owned);
        let reason = piece.events.iter().find_map(|event| match event {
            Event::Finish(reason) => Some(*reason),
            _ => None,
        });
        debug_assert!(reason.is_some(), "a finished reader says why");
        self.tally.finished(reason.unwrap_or(FinishReason::Stop));
        self.usage.reasoning_tokens = self.reasoning_tokens();
        self.is_over = true;
    }

    fn note_reasoning(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Reasoning(text) = event {
                self.reasoning.push_str(text);
            }
        }
    }

    /// The shown reasoning encoded again, as the hosted model counts; never more than all tokens.
    /// Reasoning that does not encode counts as none.
    fn reasoning_tokens(&self) -> u64 {
        if self.reasoning.is_empty() {
            return 0;
        }
        let tokens = self.tokenizer.encode(&self.reasoning).map_or(0, |ids| ids.len() as u64);
        tokens.min(self.usage.completion_tokens)
    }
}
