//! The protocols, OpenAI's, its newer one in [`responses`], and in [`anthropic`] Anthropic's: bodies to jobs, answers to JSON.
//!
//! Fields are read strictly: `null` is the same as absent, a field named twice, of another type,
//! unknown or not supported is a 400 that names it. Nothing that changes the answer is ignored.

pub(super) mod anthropic;
mod body;
mod call_field;
pub(super) mod chat;
mod chat_reply;
mod chunks;
pub(super) mod completions;
mod cutter;
pub(super) mod error;
mod fields;
mod form;
mod json;
mod logprobs;
mod messages;
pub(super) mod models;
mod picture_field;
mod prompt_field;
pub(super) mod responses;
pub(super) mod sampling;
mod thinking;
pub(super) mod tokens;
mod tools;
mod unsupported;
