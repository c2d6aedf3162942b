//! Token ids of a bare continuation to text: no reasoning, no tool calls, only stop strings.

use super::detokenise::Detokeniser;
use super::stop::StopStrings;
use super::tokenizer::Tokenizer;

/// U+FFFD in UTF-8.
const UNKNOWN: &[u8] = "\u{FFFD}".as_bytes();

/// Reads the ids of one continuation. Feed committed tokens only, without the stop token. Added
/// tokens appear as they are spelled.
#[derive(Clone, Debug, Default)]
pub struct PlainStream {
    detokeniser: Detokeniser,
    stops: StopStrings,
    /// Text that may begin a stop string.
    held: String,
    stopped: bool,
}

impl PlainStream {
    /// A stream that ends before the first of the strings in `stop`.
    pub fn new(stop: &[String]) -> Self {
        Self { stops: StopStrings::new(stop), ..Self::default() }
    }

    /// Reads ids; returns the text that they complete. An id without a vocabulary entry shows as
    /// U+FFFD. Behind a stop string everything is dropped.
    pub fn push(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> String {
        let mut text = String::new();
        for &id in ids {
            self.detokeniser.push(tokenizer.token_bytes(id).unwrap_or(UNKNOWN), &mut text);
        }
        for character in text.chars() {
            if self.stopped {
                break;
            }
            self.held.push(character);
            if let Some(length) = self.stops.push(character) {
                self.held.truncate(self.held.len() - length);
                self.stopped = true;
            }
        }
        let pending = if self.stopped { 0 } else { self.stops.pending_bytes() };
        let rest = self.held.split_off(self.held.len() - pending);
        std::mem::replace(&mut self.held, rest)
    }

    /// Ends the continuation: the text that was held back. A character whose rest never came is
    /// not shown.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// True when a stop string ended the continuation.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }
}
