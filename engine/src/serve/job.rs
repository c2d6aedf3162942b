//! What the server asks of the engine, and what it hears back.

use crate::exec::{ClientId, DraftCounts, LogProbs, PromptPicture};
use crate::grammar::Grammar;
use crate::sample::SamplingParameters;

/// One reply to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Whom it is for: clients share the engine fairly.
    pub client: ClientId,
    /// Ids of the prompt.
    pub prompt: Vec<u32>,
    /// Its pictures.
    pub pictures: Vec<PromptPicture>,
    /// What the reply is held to.
    pub form: Option<Grammar>,
    /// Ids that end the reply besides the model's own.
    pub stop_ids: Vec<u32>,
    /// Most tokens to generate, at least 1; prompt and reply fit the context.
    pub max_tokens: u64,
    /// Whether tokens may be drafted for it.
    pub drafts: bool,
    /// Only jobs of equal salt share what the prefix cache keeps.
    pub cache_salt: String,
    /// How to choose them, and which log-probabilities to report.
    pub sampling: SamplingParameters,
}

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The engine took it; its turn comes.
    Accepted,
    /// Its prefill began.
    Started {
        /// Tokens of the prompt that a cache already held.
        cached_tokens: u64,
    },
    /// Tokens that will not be taken back, oldest first, the stop token not among them.
    Tokens(Vec<GeneratedToken>),
    /// It is complete; nothing follows.
    Ended(End),
    /// It will not be completed; nothing follows.
    Failed(Failure),
}

/// A generated token.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedToken {
    /// Its id.
    pub id: u32,
    /// Its log-probability and the alternatives', when the job asked for them.
    pub log_probs: Option<LogProbs>,
    /// The drafts that it settled.
    pub drafts: DraftCounts,
}

/// Why a complete job ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The model ended its turn, or said one of the job's stop ids.
    StopToken,
    /// `max_tokens` were generated, or the context is full.
    Limit,
}

/// Why a job will not be completed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The engine refuses the job as it is.
    #[error("{argument}: {problem}")]
    Refused {
        /// What of the job is refused, by the name of its field.
        argument: String,
        /// What is wrong and what would work.
        problem: String,
    },
    /// This job went wrong, others go on.
    #[error("{0}")]
    Faulted(String),
    /// The device failed: the engine cannot go on.
    #[error("{0}; the server must be restarted")]
    DeviceLost(String),
    /// The device failed, and is about to be opened again.
    #[error("{0}; the device is being opened again, send the request again later")]
    DeviceReopening(String),
    /// The server shuts down and its time to drain is over.
    #[error("the server is shutting down; send the request again later")]
    ShutDown,
    /// The engine's thread has ended.
    #[error("the engine has stopped; the server must be restarted")]
    EngineStopped,
}

impl Failure {
    /// Of every job under way when the engine cannot go on.
    pub(super) fn from_engine(error: &crate::Error) -> Self {
        match error {
            crate::Error::Device(error) => Self::DeviceLost(error.to_string()),
            error => Self::Faulted(error.to_string()),
        }
    }
}
