//! A prompt: control tokens, plain text and places of pictures.

use std::fmt;

use super::control::ControlToken;
use super::error::TextError;
use super::token_count::TokenCount;
use super::tokenizer::Tokenizer;

/// A stretch of a prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Segment {
    /// One control token.
    Control(ControlToken),
    /// Text that is encoded without the added vocabulary.
    Text(String),
    /// The place of a picture, by its number in the request's list of pictures.
    Picture(usize),
}

/// Where the model's reply begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyStart {
    /// In new reasoning.
    Reasoning,
    /// In reasoning that the prompt has begun.
    ReasoningContinuation,
    /// In a new answer.
    Content,
    /// In an answer that the prompt has begun.
    ContentContinuation,
    /// In a tool-call block that the prompt has opened.
    ToolCalls,
}

/// A rendered conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prompt {
    segments: Vec<Segment>,
    /// Where the reply begins.
    pub reply_start: ReplyStart,
}

/// A prompt as ids.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EncodedPrompt {
    /// Token ids; each picture is one image token.
    pub ids: Vec<u32>,
    /// Where the pictures are, in the order of `ids`.
    pub pictures: Vec<PicturePlace>,
}

/// The image token of one picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PicturePlace {
    /// Index into the ids.
    pub index: usize,
    /// Number of the picture in the request's list.
    pub picture: usize,
}

impl Prompt {
    /// An empty prompt.
    pub(super) fn new(reply_start: ReplyStart) -> Self {
        Self { segments: Vec::new(), reply_start }
    }

    /// A bare text to continue. Pictures stand before it, each followed by a blank line, as the
    /// pieces of a message are.
    pub fn continuation(pictures: usize, text: &str) -> Self {
        let mut prompt = Self::new(ReplyStart::ContentContinuation);
        prompt.control(ControlToken::Bos);
        for picture in 0..pictures {
            prompt.picture(picture);
            prompt.text("\n\n");
        }
        prompt.text(text);
        prompt
    }

    /// Appends a control token.
    pub(super) fn control(&mut self, token: ControlToken) {
        self.segments.push(Segment::Control(token));
    }

    /// Appends text. Texts that meet are one segment: the tokenizer may merge across the seam.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.segments.last_mut() {
            Some(Segment::Text(last)) => last.push_str(text),
            _ => self.segments.push(Segment::Text(text.to_owned())),
        }
    }

    /// Appends the place of a picture.
    pub(super) fn picture(&mut self, picture: usize) {
        self.segments.push(Segment::Picture(picture));
    }

    /// Appends a constant of the format in which spellings of `tokens` mean the control tokens.
    pub(super) fn constant(&mut self, text: &str, tokens: &[ControlToken]) {
        let mut rest = text;
        while let Some((at, token)) = tokens
            .iter()
            .filter_map(|&token| Some((rest.find(token.spelling())?, token)))
            .min_by_key(|&(at, _)| at)
        {
            self.text(&rest[..at]);
            self.control(token);
            rest = &rest[at + token.spelling().len()..];
        }
        self.text(rest);
    }

    /// The segments in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Fewest tokens that the encoded prompt can have, without encoding it. Every segment is
    /// encoded by itself, so their fewest add up.
    pub fn least_tokens(&self, tokenizer: &Tokenizer) -> TokenCount {
        let least = |segment: &Segment| match segment {
            Segment::Text(text) => tokenizer.least_tokens(text),
            Segment::Control(_) | Segment::Picture(_) => 1,
        };
        TokenCount::AtLeast(self.segments.iter().map(least).sum())
    }

    /// The prompt as ids, every picture as one `image_token_id` (the id is the configuration's:
    /// tokenizers spell that token differently).
    ///
    /// # Errors
    /// [`TextError::MissingControlToken`] when the tokenizer lacks a token of this prompt,
    /// [`TextError::Encode`] when it refuses a text.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        image_token_id: u32,
    ) -> Result<EncodedPrompt, TextError> {
        self.encode_while(tokenizer, image_token_id, || Ok(()))
    }

    /// As [`Prompt::encode`], and asks before each segment whether to go on.
    ///
    /// # Errors
    /// Those of [`Prompt::encode`] and of `go_on`.
    pub fn encode_while<E: From<TextError>>(
        &self,
        tokenizer: &Tokenizer,
        image_token_id: u32,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<EncodedPrompt, E> {
        let mut encoded = EncodedPrompt::default();
        for segment in &self.segments {
            go_on()?;
            match segment {
                Segment::Control(token) => encoded.ids.push(tokenizer.control_token(*token)?),
                Segment::Text(text) => encoded.ids.extend(tokenizer.encode(text)?),
                Segment::Picture(picture) => {
                    let place = PicturePlace { index: encoded.ids.len(), picture: *picture };
                    encoded.pictures.push(place);
                    encoded.ids.push(image_token_id);
                }
            }
        }
        Ok(encoded)
    }
}

/// The prompt as one text, control tokens spelled out; for people, not for encoding.
impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            f.write_str(match segment {
                Segment::Control(token) => token.spelling(),
                Segment::Text(text) => text,
                Segment::Picture(_) => ControlToken::Image.spelling(),
            })?;
        }
        Ok(())
    }
}
