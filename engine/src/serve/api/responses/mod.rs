//! OpenAI's newer protocol: `/v1/responses`.
//!
//! A request becomes the same chat request that `/v1/chat/completions` makes, so both give one answer.
//! Nothing is kept between requests: the conversation comes whole in `input`, the items of earlier
//! responses among it, and whatever would look something up is refused by its name. Reasoning comes as
//! an item with its text and is taken back as such or, for clients that send back what they cannot
//! read, in `encrypted_content`, which is the text in base64 and comes where `include` asks for it.
//! A function is held to its schema where `strict` is true.

pub(in crate::serve) mod create;
mod events;
mod frame;
mod input;
mod item;
mod message;
mod output;
mod request;
