//! Engram's vocabulary compression: token id to the id of its class of look-alike tokens.
//!
//! Tokens that differ only in case, accents, compatibility forms or surrounding spaces share one
//! class, so that an n-gram finds the same row however it is written.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::error::TextError;
use super::tokenizer::Tokenizer;

/// Stands for a token that is one space while the outer spaces of all others are stripped.
const SPACE: char = '\u{E000}';

/// Token id to compressed id.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VocabularyMap {
    ids: Vec<i32>,
    classes: usize,
}

impl VocabularyMap {
    /// Derives the map from a tokenizer; classes are numbered in the order of their first token.
    ///
    /// # Errors
    /// [`TextError::VocabularyClasses`] when the number of classes is not `expected_classes`: the
    /// hash multipliers depend on it. [`TextError::UnknownTokenId`] when the vocabulary has holes.
    pub fn new(tokenizer: &Tokenizer, expected_classes: usize) -> Result<Self, TextError> {
        let mut ids = Vec::with_capacity(tokenizer.vocabulary_size());
        let mut classes: HashMap<String, i32> = HashMap::new();
        for index in 0..tokenizer.vocabulary_size() {
            let id = u32::try_from(index).expect("the vocabulary is indexed by 32-bit ids");
            let next = i32::try_from(classes.len()).expect("fewer classes than 31-bit ids");
            ids.push(*classes.entry(class_key(tokenizer, id)?).or_insert(next));
        }
        if classes.len() != expected_classes {
            return Err(TextError::VocabularyClasses {
                found: classes.len(),
                expected: expected_classes,
            });
        }
        Ok(Self { ids, classes: expected_classes })
    }

    /// Compressed ids, indexed by token id.
    pub fn ids(&self) -> &[i32] {
        &self.ids
    }

    /// Number of classes; compressed ids are below it.
    pub fn classes(&self) -> usize {
        self.classes
    }
}

/// What a token is compared by.
fn class_key(tokenizer: &Tokenizer, id: u32) -> Result<String, TextError> {
    let Ok(text) = std::str::from_utf8(tokenizer.token_bytes(id)?) else {
        // Part of a character: its spelling cannot be normalised and is unique.
        return Ok(tokenizer.spelling(id)?.to_owned());
    };
    // A token may also hold U+FFFD itself, which the published rule treats like a part.
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(tokenizer.spelling(id)?.to_owned());
    }
    let normal = normalise(text);
    Ok(if normal.is_empty() { text.to_owned() } else { normal })
}

/// NFKC, NFD, no marks, lower case, runs of blanks to one space, outer white space off.
fn normalise(text: &str) -> String {
    let unmarked: String =
        text.nfkc().nfd().filter(|&character| !is_combining_mark(character)).collect();
    // Character by character: a final sigma is not told from an inner one.
    let lower: String = unmarked.chars().flat_map(char::to_lowercase).collect();
    let mut collapsed = String::with_capacity(lower.len());
    for character in lower.chars() {
        if !matches!(character, ' ' | '\t' | '\r' | '\n') {
            collapsed.push(character);
        } else if !collapsed.ends_with(' ') {
            collapsed.push(' ');
        }
    }
    if collapsed == " " {
        collapsed = SPACE.to_string();
    }
    collapsed.trim().replace(SPACE, " ")
}

#[cfg(test)]
mod tests {
    use super::normalise;

    #[test]
    fn look_alikes_share_a_key() {
        for (text, key) in [
            (" Hello", "hello"),
            ("É", "e"),
            ("２", "2"),
            ("①", "1"),
            ("，", ","),
            ("ﬁ", "fi"),
            (" ", " "),
            ("\r\n\t ", " "),
            ("a \t b", "a b"),
            ("ΣΑΣ", "σασ"),
            ("\u{0301}", ""),
        ] {
            assert_eq!(normalise(text), key, "{text:?}");
        }
    }
}
