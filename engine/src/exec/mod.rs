//! Steps: what runs, on which rows, and what comes of it.
//!
//! * [`Engine`] queues requests, shares out the rows of a step, and keeps or rolls back what the
//!   step computed. It sees a model as [`Forward`].
//! * [`Runner`] is a [`Forward`] on a device: it uploads the lists, runs a [`Network`] and samples.
//! * [`StepLists`] and [`DraftLists`] are the rows of a step on the host, [`Batch`] and
//!   [`DraftBatch`] the same on a device.

pub mod batch;
mod captured;
mod chunk;
mod draft_lists;
mod engine;
mod event;
mod forward;
mod geometry;
mod network;
mod options;
mod pace;
mod picture_pool;
mod prompt_picture;
mod proposer;
mod queue;
mod ranks;
mod request;
mod row_lists;
mod runner;
mod schedule;
mod sequence;
mod staging;
mod step_buffer;
mod step_lists;
mod step_shape;
mod work;

pub(crate) use captured::Captured;

pub use batch::{Batch, DraftBatch, PictureRows, RatioLists, UpperRows};
pub use chunk::{Chunk, PictureSpan};
pub use draft_lists::{Anchor, DraftLists};
pub use engine::{Clock, Engine};
pub use event::{DraftCounts, Event, FinishReason, Usage, What};
pub use forward::{Drafter, Forward, LogProbs, Sample, Sampled};
pub use geometry::{Geometry, PictureGeometry, UpperHalf};
pub use network::{Drafted, Network};
pub use options::{DraftSource, EngineOptions, Graphs, MAX_LOOKUP_TOKENS, Replay};
pub use prompt_picture::PromptPicture;
pub use proposer::{Drafting, Proposer};
pub use ranks::Ranks;
pub use request::{ClientId, Request, RequestId};
pub use row_lists::RowLists;
pub use runner::Runner;
pub(crate) use staging::Staging;
pub use step_buffer::StepBuffer;
pub use step_lists::{StepLists, UpperLists};
pub use step_shape::StepShape;
pub use work::{COUNTED_DRAFTS, Work};
