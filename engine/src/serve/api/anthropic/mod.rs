//! Anthropic's protocol: `/v1/messages` and `/v1/messages/count_tokens`.
//!
//! A request becomes the same chat request that OpenAI's protocol makes, so both give one answer.
//! Fields are read as strictly; errors have this protocol's shape. Caches are kept without being asked
//! for, so `cache_control` is taken everywhere and changes nothing.

mod blocks;
mod content;
pub(in crate::serve) mod error;
mod events;
pub(in crate::serve) mod messages;
mod request;
mod usage;
