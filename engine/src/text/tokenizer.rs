//! Byte-level tokenizer: plain text to ids, control tokens by name, ids to bytes.

use std::collections::HashMap;
use std::path::Path;

use super::byte_alphabet::ByteAlphabet;
use super::control::ControlToken;
use super::coverage::longest_token_bytes;
use super::error::TextError;

/// One id of the vocabulary.
#[derive(Clone, Debug)]
struct Entry {
    /// The bytes that the id stands for in text.
    bytes: Box<[u8]>,
    /// As written in the tokenizer.json: byte-level alphabet, or plain for added tokens.
    spelling: Box<str>,
    /// Belongs to the added vocabulary, special or not.
    added: bool,
    /// The role of the token, when it has one.
    control: Option<ControlToken>,
}

/// A tokenizer.json, split into what encodes text and what only exists as ids.
///
/// The added vocabulary is taken out of the encoding pipeline when the file is loaded: text can
/// never become a control token, whatever it spells. Control tokens enter a prompt by role.
#[derive(Clone)]
pub struct Tokenizer {
    pipeline: tokenizers::Tokenizer,
    /// Indexed by id; `None` for holes.
    entries: Vec<Option<Entry>>,
    added: HashMap<Box<str>, u32>,
    /// Of those that text can become; `None` when a text's length says nothing about its tokens.
    longest_token_bytes: Option<u64>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("ids", &self.entries.len())
            .field("added", &self.added.len())
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads a tokenizer.json from a file.
    ///
    /// # Errors
    /// As [`Tokenizer::from_bytes`], and [`TextError::TokenizerFile`] when reading fails.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TextError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path)
            .map_err(|source| TextError::TokenizerFile { path: path.to_owned(), source })?;
        Self::from_bytes(&bytes)
    }

    /// Reads a tokenizer.json from memory.
    ///
    /// # Errors
    /// [`TextError::TokenizerFormat`] when the bytes are not a tokenizer.json,
    /// [`TextError::NotByteLevel`] when a vocabulary entry has characters outside the byte-level
    /// alphabet.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TextError> {
        let format = |reason: tokenizers::Error| TextError::TokenizerFormat {
            reason: reason.to_string().replace('\n', " "),
        };
        let mut pipeline = tokenizers::Tokenizer::from_bytes(bytes).map_err(format)?;
        pipeline.with_truncation(None).map_err(format)?;
        pipeline.with_padding(None);

        let alphabet = ByteAlphabet::new();
        let added_ids = pipeline.get_added_vocabulary().get_added_tokens_decoder().clone();
        let mut entries = Vec::new();
        let mut added = HashMap::new();
        for (spelling, id) in pipeline.get_vocab(true) {
            let is_added = added_ids.contains_key(&id);
            let bytes = match alphabet.bytes_of(&spelling) {
                Some(bytes) => bytes,
                None if is_added => spelling.as_bytes().into(),
                None => return Err(TextError::NotByteLevel { id, spelling }),
            };
            let spelling = spelling.into_boxed_str();
            let control = ControlToken::ALL
                .into_iter()
                .find(|token| is_added && *token.spelling() == *spelling);
            if is_added {
                added.insert(spelling.clone(), id);
            }
            let index = index_of(id);
            if entries.len() <= index {
                entries.resize_with(index + 1, || None);
            }
            entries[index] = Some(Entry { bytes, spelling, added: is_added, control });
        }
        pipeline.with_added_vocabulary(tokenizers::AddedVocabulary::new());
        let longest_token_bytes = longest_token_bytes(&pipeline, &alphabet);
        Ok(Self { pipeline, entries, added, longest_token_bytes })
    }

    /// Number of ids: the largest id plus one.
    pub fn vocabulary_size(&self) -> usize {
        self.entries.len()
    }

    /// Checks that every id has an embedding row.
    ///
    /// # Errors
    /// [`TextError::VocabularySize`] when the tokenizer uses more ids than `rows`.
    pub fn check_vocabulary_size(&self, rows: usize) -> Result<(), TextError> {
        if self.vocabulary_size() <= rows {
            return Ok(());
        }
        Err(TextError::VocabularySize { found: self.vocabulary_size(), expected: rows })
    }

    /// Ids of plain text. Spellings of added tokens get ordinary ids; nothing is put around the text.
    ///
    /// # Errors
    /// [`TextError::Encode`] when the tokenizer library refuses the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let encoding = self
            .pipeline
            .encode_fast(text, false)
            .map_err(|reason| TextError::Encode { reason: reason.to_string() })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Fewest ids that [`Tokenizer::encode`] can make of a text, from its length alone:
    /// `ceil(bytes / longest_token_bytes)`. 0 where a tokenizer may drop or shorten text.
    pub fn least_tokens(&self, text: &str) -> u64 {
        self.longest_token_bytes.map_or(0, |longest| (text.len() as u64).div_ceil(longest))
    }

    /// Id of an added token by its spelling.
    pub fn added_token(&self, spelling: &str) -> Option<u32> {
        self.added.get(spelling).copied()
    }

    /// Id of a control token.
    ///
    /// # Errors
    /// [`TextError::MissingControlToken`] when the added vocabulary lacks it.
    pub fn control_token(&self, token: ControlToken) -> Result<u32, TextError> {
        let spelling = token.spelling();
        self.added_token(spelling).ok_or(TextError::MissingControlToken { spelling })
    }

    /// The role of an id, when it is a control token.
    pub fn control_of(&self, id: u32) -> Option<ControlToken> {
        self.entry(id).ok()?.control
    }

    /// True when the id belongs to the added vocabulary.
    pub fn is_added(&self, id: u32) -> bool {
        self.entry(id).is_ok_and(|entry| entry.added)
    }

    /// The spelling of an id of the added vocabulary; `None` for every other id.
    pub fn added_spelling(&self, id: u32) -> Option<&str> {
        let entry = self.entry(id).ok()?;
        entry.added.then_some(&*entry.spelling)
    }

    /// The bytes that an id stands for; not always whole characters.
    ///
    /// # Errors
    /// [`TextError::UnknownTokenId`] when no entry has this id.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8], TextError> {
        Ok(&self.entry(id)?.bytes)
    }

    /// An id as the tokenizer.json spells it.
    ///
    /// # Errors
    /// [`TextError::UnknownTokenId`] when no entry has this id.
    pub fn spelling(&self, id: u32) -> Result<&str, TextError> {
        Ok(&self.entry(id)?.spelling)
    }

    /// The bytes of a sequence of ids, added tokens included.
    ///
    /// # Errors
    /// [`TextError::UnknownTokenId`] at the first id without an entry.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>, TextError> {
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(self.token_bytes(id)?);
        }
        Ok(bytes)
    }

    fn entry(&self, id: u32) -> Result<&Entry, TextError> {
        self.entries
            .get(index_of(id))
            .and_then(Option::as_ref)
            .ok_or(TextError::UnknownTokenId { id, size: self.entries.len() })
    }
}

/// A token id as an index; ids are 32-bit and so are the smallest hosts.
fn index_of(id: u32) -> usize {
    usize::try_from(id).expect("a 32-bit id fits an index on every supported host")
}
