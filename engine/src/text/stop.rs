//! Stop strings over a stream: found across any seams, nothing held longer than needed.

/// One stop string and how much of it the text ends with.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Needle {
    bytes: Vec<u8>,
    /// For each length of a matched beginning, the next shorter beginning that it also ends with.
    shorter: Vec<usize>,
    matched: usize,
}

impl Needle {
    fn new(text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        let mut shorter = vec![0; bytes.len() + 1];
        for end in 1..bytes.len() {
            let mut length = shorter[end];
            while length > 0 && bytes[length] != bytes[end] {
                length = shorter[length];
            }
            shorter[end + 1] = length + usize::from(bytes[length] == bytes[end]);
        }
        Self { bytes, shorter, matched: 0 }
    }

    /// Feeds one byte; true when the text now ends with the whole stop string.
    fn push(&mut self, byte: u8) -> bool {
        if self.matched == self.bytes.len() {
            self.matched = self.shorter[self.matched];
        }
        while self.matched > 0 && self.bytes[self.matched] != byte {
            self.matched = self.shorter[self.matched];
        }
        self.matched += usize::from(self.bytes[self.matched] == byte);
        self.matched == self.bytes.len()
    }
}

/// Watches a text for several stop strings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct StopStrings {
    needles: Vec<Needle>,
}

impl StopStrings {
    /// Empty strings are left out: they would stop every reply before it starts.
    pub(super) fn new(strings: &[String]) -> Self {
        let needles =
            strings.iter().filter(|text| !text.is_empty()).map(|text| Needle::new(text)).collect();
        Self { needles }
    }

    /// Feeds one character. Returns the length in bytes of the stop string that the text now ends
    /// with, the longest when there are several.
    pub(super) fn push(&mut self, character: char) -> Option<usize> {
        let mut found = None;
        let mut buffer = [0; 4];
        for &byte in character.encode_utf8(&mut buffer).as_bytes() {
            for needle in &mut self.needles {
                if needle.push(byte) {
                    found = found.max(Some(needle.bytes.len()));
                }
            }
        }
        found
    }

    /// Bytes at the end of the text that may be the beginning of a stop string.
    pub(super) fn pending_bytes(&self) -> usize {
        self.needles.iter().map(|needle| needle.matched).max().unwrap_or(0)
    }

    /// Forgets the text: what follows does not join on to it.
    pub(super) fn reset(&mut self) {
        for needle in &mut self.needles {
            needle.matched = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopStrings;

    fn first_stop(strings: &[&str], text: &str) -> Option<String> {
        let strings: Vec<String> = strings.iter().copied().map(String::from).collect();
        let mut stops = StopStrings::new(&strings);
        for (at, character) in text.char_indices() {
            if let Some(length) = stops.push(character) {
                return Some(text[..at + character.len_utf8() - length].to_owned());
            }
        }
        None
    }

    #[test]
    fn earliest_and_longest() {
        assert_eq!(
            first_stop(&["own fox"], "The quick brown fox").as_deref(),
            Some("The quick br")
        );
        assert_eq!(first_stop(&["ZZ", "k br"], "The quick brown").as_deref(), Some("The quic"));
        assert_eq!(first_stop(&["cd", "bcd"], "abcde").as_deref(), Some("a"));
        assert_eq!(first_stop(&["aab"], "aaab").as_deref(), Some("a"));
        assert_eq!(first_stop(&["abab", "x"], "abaabab").as_deref(), Some("aba"));
        assert_eq!(first_stop(&["👍"], "a🙂👍").as_deref(), Some("a🙂"));
        assert_eq!(first_stop(&["", "z"], "abc"), None);
    }

    #[test]
    fn pending_is_what_may_still_match() {
        let mut stops = StopStrings::new(&["STOP".into(), "OPEN".into()]);
        let pending: Vec<usize> = "xSTOxOPSaST"
            .chars()
            .map(|character| {
                assert_eq!(stops.push(character), None);
                stops.pending_bytes()
            })
            .collect();
        assert_eq!(pending, [0, 1, 2, 3, 0, 1, 2, 1, 0, 1, 2]);
        stops.reset();
        assert_eq!(stops.pending_bytes(), 0);
    }
}
