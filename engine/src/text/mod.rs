//! Text in and out: tokenizer, conversation to prompt, token stream to reply.
//!
//! A prompt is built from segments, each a control token or plain text, and plain text is encoded
//! without the added vocabulary: nothing that a user types becomes a control token. A reply is
//! parsed from token ids for the same reason: text that merely spells a marker stays text.

mod byte_alphabet;
pub mod control;
pub mod detokenise;
pub mod error;
pub mod tokenizer;
pub mod vocabulary_map;

pub use control::ControlToken;
pub use detokenise::Detokeniser;
pub use error::{ConversationError, TextError};
pub use tokenizer::Tokenizer;
pub use vocabulary_map::VocabularyMap;
