//! The server: OpenAI's and Anthropic's protocols over one engine.
//!
//! A request passes through `body_room` (memory for its body, or 429), `large_bodies` (one is prepared
//! at a time), `api` (strict reading of the body, prompt, limits), `admission` (a place, or 429),
//! `mailbox` (the engine's own thread, never a task of the runtime) and `answer` (ids to text), and
//! is answered whole or by `sse`. Whoever drops a [`Generation`], a handler whose client hung up
//! included, frees what the engine held for it.

mod admission;
mod answer;
mod answers;
mod api;
mod api_keys;
mod app;
mod batch;
mod body_room;
mod caller;
mod connections;
mod desk;
pub mod generation;
pub mod generator;
mod health;
pub mod job;
mod large_bodies;
mod local;
mod mailbox;
mod metrics;
mod options;
mod page;
mod pictures;
mod places;
mod random;
mod record;
mod reopening;
#[cfg(test)]
mod schedules;
mod sequences;
mod server;
mod signal;
mod sse;
mod stalling;
mod stamp;
mod tls;
mod usage;

pub use admission::{Admission, Permit, WaitingTokens};
pub use api_keys::ApiKeys;
pub use app::{ServedModel, ServedPictures};
pub use batch::{BatchRequest, answer_batch};
pub use generation::Generation;
pub use generator::{Counts, Generator, GeneratorLimits, JobId, Load, PageCounts};
pub use job::{End, Failure, GeneratedToken, Job, Update};
pub use local::{Local, LocalReply};
pub use mailbox::EngineHandle;
pub use options::{
    BodyLimits, ConnectionLimits, KernelUse, MemoryUse, PictureBounds, ServerOptions,
};
pub use sequences::Sequences;
pub use server::Server;
pub use tls::Tls;
