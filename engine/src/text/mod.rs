//! Text in and out: tokenizer, conversation to prompt, token stream to reply.
//!
//! A prompt is built from segments, each a control token or plain text, and plain text is encoded
//! without the added vocabulary: nothing that a user types becomes a control token. A reply is
//! parsed from token ids for the same reason: text that merely spells a marker stays text.

mod answer_filter;
mod byte_alphabet;
pub mod byte_reply;
pub mod control;
pub mod conversation;
mod coverage;
pub mod detokenise;
pub mod effort;
mod encode;
pub mod error;
pub mod event;
pub mod json_style;
mod markup;
pub mod parse;
pub mod plain_stream;
pub mod prompt;
pub mod reply;
pub mod sampling_defaults;
mod stop;
pub mod stream;
mod system_blocks;
pub mod token_count;
pub mod tokenizer;
mod tool_block;
mod turns;
pub mod vocabulary_map;

pub use byte_reply::reply_from_bytes;
pub use control::ControlToken;
pub use conversation::{
    AssistantMessage, Conversation, Message, Part, ResponseFormat, Task, Tool, ToolCall, ToolChoice,
};
pub use detokenise::Detokeniser;
pub use effort::{Effort, EffortRequest};
pub use error::{ConversationError, TextError};
pub use event::{Event, FinishReason};
pub use parse::{GenerationEnd, ParseOptions, Piece, ReplyParser};
pub use plain_stream::PlainStream;
pub use prompt::{EncodedPrompt, PicturePlace, Prompt, ReplyStart, Segment};
pub use reply::{Reply, ReplyCall};
pub use sampling_defaults::{SamplingFields, SamplingRequest};
pub use stream::ReplyStream;
pub use token_count::TokenCount;
pub use tokenizer::Tokenizer;
pub use vocabulary_map::VocabularyMap;
