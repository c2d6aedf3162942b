//! Errors of the text side: one line each, naming the thing and the remedy.

use std::path::PathBuf;

/// A tokenizer that cannot be used, or a text that it cannot encode.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The file could not be read.
    #[error("cannot read tokenizer {path}: {source}; check the path and its permissions")]
    TokenizerFile {
        /// The path that was tried.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The bytes are not a tokenizer.json that the tokenizer library understands.
    #[error("not a usable tokenizer.json: {reason}; take the file that ships with the checkpoint")]
    TokenizerFormat {
        /// What the library said.
        reason: String,
    },
    /// A vocabulary entry is not written in the byte-level alphabet.
    #[error(
        "token {id} ({spelling:?}) is not spelled in the byte-level alphabet; only byte-level tokenizers are supported"
    )]
    NotByteLevel {
        /// The offending id.
        id: u32,
        /// Its spelling in the file.
        spelling: String,
    },
    /// The tokenizer has ids that the model has no embedding row for.
    #[error(
        "the tokenizer uses {found} token ids but the model has {expected} rows; tokenizer.json and config.json are of different checkpoints"
    )]
    VocabularySize {
        /// Largest id of the tokenizer plus one.
        found: usize,
        /// `vocab_size` of the configuration.
        expected: usize,
    },
    /// A control token that the prompt needs is not in the added vocabulary.
    #[error(
        "the tokenizer has no control token {spelling}; use a tokenizer.json of this model family or leave out the feature that needs it"
    )]
    MissingControlToken {
        /// The token as it is spelled in a tokenizer.json.
        spelling: &'static str,
    },
    /// An id outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {size} ids")]
    UnknownTokenId {
        /// The offending id.
        id: u32,
        /// Vocabulary size in ids.
        size: usize,
    },
    /// The tokenizer library refused a text.
    #[error("the text could not be tokenised: {reason}")]
    Encode {
        /// What the library said.
        reason: String,
    },
    /// The compressed vocabulary does not have the size that the hash constants were made for.
    #[error(
        "vocabulary compression gives {found} classes, config.json says {expected}; every n-gram lookup would be wrong, so check that tokenizer.json belongs to the checkpoint"
    )]
    VocabularyClasses {
        /// Classes counted.
        found: usize,
        /// `engram_compressed_vocab_size` of the configuration.
        expected: usize,
    },
    /// The conversation cannot be turned into a prompt.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}

/// A conversation that has no prompt: the client's mistake, never the server's.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConversationError {
    /// No message at all.
    #[error("the conversation has no messages; send at least one")]
    Empty,
    /// A tool choice that opens the tool block needs chat mode.
    #[error(
        "tool_choice {choice} is not possible while thinking is on; disable thinking or use tool_choice \"auto\""
    )]
    ToolChoiceWhileThinking {
        /// The choice as the client wrote it.
        choice: String,
    },
    /// The named tool was not declared.
    #[error("tool_choice names {name:?}, which is not among the declared tools")]
    UnknownToolChoice {
        /// The name that was asked for.
        name: String,
    },
    /// A prefix continuation that is not the last message.
    #[error(
        "message {index} is a prefix but not the last message; only the last one can be continued"
    )]
    PrefixNotLast {
        /// Position of the message, from 0.
        index: usize,
    },
    /// Prefix continuation together with declared tools.
    #[error("a prefix message cannot be continued when tools are declared; leave out one of them")]
    PrefixWithTools,
    /// Prefix continuation together with JSON output.
    #[error(
        "a prefix message cannot be continued with a JSON response format; leave out one of them"
    )]
    PrefixWithJson,
    /// JSON output without the word in the prompt: the model would ramble.
    #[error(
        "response_format json_object needs the word \"json\" somewhere in the messages; mention it in the instructions"
    )]
    JsonNotMentioned,
    /// An effort word that no table knows.
    #[error(
        "unknown reasoning effort {value:?}; use none, minimal, low, medium, high, xhigh, ultra, max or an integer from 1 to 100"
    )]
    UnknownEffort {
        /// What the client wrote.
        value: String,
    },
}
