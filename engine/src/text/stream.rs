//! Token ids of a reply to events.

use super::detokenise::Detokeniser;
use super::event::Event;
use super::parse::{GenerationEnd, ParseOptions, Piece, ReplyParser};
use super::prompt::ReplyStart;
use super::tokenizer::Tokenizer;

/// U+FFFD in UTF-8.
const UNKNOWN: &[u8] = "\u{FFFD}".as_bytes();

/// Reads the ids of one reply. Feed committed tokens only, without the stop token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReplyStream {
    detokeniser: Detokeniser,
    parser: ReplyParser,
}

impl ReplyStream {
    /// A stream at the start of a reply.
    pub fn new(options: ParseOptions) -> Self {
        Self { detokeniser: Detokeniser::default(), parser: ReplyParser::new(options) }
    }

    /// Where the prompt left off.
    pub fn start(&self) -> ReplyStart {
        self.parser.start()
    }

    /// Reads ids; returns what they complete. An id without a vocabulary entry, which a model with
    /// more rows than tokens can produce, shows as U+FFFD.
    pub fn push(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut text = String::new();
        for &id in ids {
            let Some(spelling) = tokenizer.added_spelling(id) else {
                let bytes = tokenizer.token_bytes(id).unwrap_or(UNKNOWN);
                self.detokeniser.push(bytes, &mut text);
                continue;
            };
            // A character cut by a control token can no longer be finished.
            self.detokeniser.close(&mut text);
            let control = tokenizer.control_of(id);
            events
                .extend(self.parser.push([Piece::Text(&text), Piece::Token { control, spelling }]));
            text.clear();
        }
        events.extend(self.parser.push([Piece::Text(&text)]));
        events
    }

    /// Ends the reply. A character whose rest never came is not shown.
    pub fn finish(&mut self, end: GenerationEnd) -> Vec<Event> {
        self.detokeniser = Detokeniser::default();
        self.parser.finish(end)
    }

    /// The stop string that ended the reply.
    pub fn stop_string(&self) -> Option<&str> {
        self.parser.stop_string()
    }

    /// True when a stop string ended the reply: generation can stop.
    pub fn is_finished(&self) -> bool {
        self.parser.is_finished()
    }

    /// True when all that can still follow is dropped.
    pub fn is_discarding(&self) -> bool {
        self.parser.is_discarding()
    }
}
