//! Bytes of tokens to text, never half a character.

/// Turns the bytes of successive tokens into text.
///
/// A character spread over tokens appears when its last byte arrives. A sequence that can no
/// longer become valid appears at once as one U+FFFD per maximal invalid part and holds nothing
/// up. At most three bytes are ever held back.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Detokeniser {
    /// The start of a character whose rest has not come yet.
    unfinished: Vec<u8>,
}

impl Detokeniser {
    /// Appends to `text` what `bytes` completes.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.unfinished.extend_from_slice(bytes);
        let mut seen = 0;
        let mut kept = 0;
        for chunk in self.unfinished.utf8_chunks() {
            text.push_str(chunk.valid());
            seen += chunk.valid().len() + chunk.invalid().len();
            // Only at the very end can an invalid part still become a character.
            if seen == self.unfinished.len() && could_be_finished(chunk.invalid()) {
                kept = chunk.invalid().len();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.unfinished.drain(..seen - kept);
    }

    /// Ends a run of text: an unfinished character can no longer be finished and becomes one
    /// U+FFFD.
    pub fn close(&mut self, text: &mut String) {
        if !self.unfinished.is_empty() {
            self.unfinished.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// True when more bytes could still make `part` a character.
fn could_be_finished(part: &[u8]) -> bool {
    std::str::from_utf8(part).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::Detokeniser;

    fn deltas(tokens: &[&[u8]]) -> Vec<String> {
        let mut detokeniser = Detokeniser::default();
        tokens
            .iter()
            .map(|bytes| {
                let mut delta = String::new();
                detokeniser.push(bytes, &mut delta);
                delta
            })
            .collect()
    }

    #[test]
    fn characters_over_tokens_come_out_whole() {
        assert_eq!(deltas(&[b"\xF0\x9F", b"\x98\x8A"]), ["", "😊"]);
        assert_eq!(deltas(&[b"\xE4", b"\xBD", b"\xA0", b" x"]), ["", "", "你", " x"]);
        assert_eq!(deltas(&[b"a\xE4\xBD", b"\xA0b\xF0", b"\x9F\x98\x8A"]), ["a", "你b", "😊"]);
    }

    #[test]
    fn bytes_that_cannot_become_valid_do_not_wait() {
        assert_eq!(deltas(&[b"a", b"\xFF", b"b"]), ["a", "\u{FFFD}", "b"]);
        assert_eq!(deltas(&[b"\xF0\x9F", b"x"]), ["", "\u{FFFD}x"]);
        assert_eq!(deltas(&[b"\x80", b"\xC0\x80"]), ["\u{FFFD}", "\u{FFFD}\u{FFFD}"]);
        assert_eq!(deltas(&[b"\xED", b"\xA0", b"\x80"]), ["", "\u{FFFD}\u{FFFD}", "\u{FFFD}"]);
    }

    #[test]
    fn close_shows_the_unfinished_part_once() {
        let mut detokeniser = Detokeniser::default();
        let mut text = String::new();
        detokeniser.push(b"hi\xF0\x9F\x98", &mut text);
        detokeniser.close(&mut text);
        detokeniser.close(&mut text);
        assert_eq!(text, "hi\u{FFFD}");
    }
}
