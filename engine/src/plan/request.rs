//! What a plan is asked for.

use super::board::{Boards, Placement};
use crate::error::{Error, Result};
use crate::model::v41::Config;

/// A question to the planner. Everything but the boards may be left to the board's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Boards of one node.
    pub boards: Boards,
    /// Ranks that share one copy of the model.
    pub tensor_parallel: Option<usize>,
    /// Where the n-gram tables lie.
    pub engram: Option<Placement>,
    /// Longest sequence; the model's limit if unset.
    pub context_tokens: Option<u64>,
    /// Sequences run at once.
    pub sequences: Option<u64>,
    /// Tokens of one step.
    pub step_tokens: Option<u64>,
    /// Drafts per step; the trained block if unset, 0 turns drafting off and leaves its weights
    /// out.
    pub draft_tokens: Option<i64>,
    /// Part of the memory the engine may fill, above 0 and up to 1.
    pub utilisation: Option<f64>,
    /// Pictures whose rows are held at once, 0 to leave the vision tower out; [`PICTURES`] if
    /// unset, where the model reads any.
    pub pictures: Option<u64>,
    /// Bytes for the indexer's scores.
    pub score_budget_bytes: u64,
}

/// A request with every choice made and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Ranks that share one copy of the model.
    pub tensor_parallel: usize,
    /// Where the n-gram tables lie.
    pub engram: Placement,
    /// Longest sequence.
    pub context_tokens: u64,
    /// Sequences run at once.
    pub sequences: u64,
    /// Tokens of one step.
    pub step_tokens: u64,
    /// Drafts per step.
    pub draft_tokens: u64,
    /// Part of the memory the engine may fill.
    pub utilisation: f64,
    /// Pictures whose rows are held at once; 0 without a vision tower.
    pub pictures: u64,
    /// Bytes for the indexer's scores.
    pub score_budget_bytes: u64,
}

/// The option that names the ranks.
const RANKS: &str = "--tensor-parallel-size";

/// The option that names the pictures.
const HELD_PICTURES: &str = "--max-pictures";

/// Pictures held at once unless the user says otherwise: one is read while another is computed.
pub const PICTURES: u64 = 2;

/// Default bytes for the indexer's scores.
pub const SCORE_BUDGET_BYTES: u64 = 2 << 30;

impl Request {
    /// A request that leaves every choice to the defaults.
    pub fn new(boards: Boards) -> Self {
        Self {
            boards,
            tensor_parallel: None,
            engram: None,
            context_tokens: None,
            sequences: None,
            step_tokens: None,
            draft_tokens: None,
            utilisation: None,
            pictures: None,
            score_budget_bytes: SCORE_BUDGET_BYTES,
        }
    }

    /// Makes and checks every choice.
    ///
    /// # Errors
    /// One line naming the option that cannot be honoured.
    pub fn limits(&self, config: &Config) -> Result<Limits> {
        let (board, count) = (&self.boards.board, self.boards.count);
        let tensor_parallel = match self.tensor_parallel {
            Some(ranks) => ranks,
            None => default_ranks(config, board.tensor_parallel, count),
        };
        super::tensor_parallel::check(RANKS, config, tensor_parallel)?;
        if !count.is_multiple_of(tensor_parallel) {
            let problem = format!("{count} boards do not divide into groups of {tensor_parallel}");
            return Err(Error::argument(RANKS, problem));
        }
        let longest = config.max_position_tokens as u64;
        let sequences =
            within("--max-num-seqs", self.sequences.unwrap_or(board.sequences), 1 << 16)?;
        let draft_tokens = config.draft_tokens(self.draft_tokens)? as u64;
        let step_tokens = within(
            "--max-num-batched-tokens",
            self.step_tokens.unwrap_or(board.step_tokens),
            1 << 22,
        )?;
        let utilisation = self.utilisation.unwrap_or(board.utilisation);
        if !(utilisation > 0.0 && utilisation <= 1.0) {
            let problem = format!("{utilisation} is not above 0 and up to 1");
            return Err(Error::argument("--gpu-memory-utilization", problem));
        }
        Ok(Limits {
            tensor_parallel,
            engram: self.engram.unwrap_or(board.engram),
            context_tokens: within(
                "--max-model-len",
                self.context_tokens.unwrap_or(longest),
                longest,
            )?,
            sequences,
            step_tokens,
            draft_tokens,
            utilisation,
            pictures: pictures(config, self.pictures, PICTURES)?,
            score_budget_bytes: self.score_budget_bytes,
        })
    }
}

/// The board's usual number of ranks, or the most that the boards at hand allow.
fn default_ranks(config: &Config, usual: usize, count: usize) -> usize {
    super::tensor_parallel::working(config)
        .filter(|ranks| *ranks <= usual && count.is_multiple_of(*ranks))
        .max()
        .unwrap_or(1)
}

/// Pictures held at once: those `asked` for, else `open` where the model reads any.
///
/// # Errors
/// [`Error::Argument`] for pictures of a model that reads none, and for too many.
pub fn pictures(config: &Config, asked: Option<u64>, open: u64) -> Result<u64> {
    const MOST: u64 = 1 << 12;
    match (asked, &config.vision) {
        (None, None) => Ok(0),
        (None, Some(_)) => Ok(open),
        (Some(1..), None) => {
            let problem = "this model reads text only; leave it out";
            Err(Error::argument(HELD_PICTURES, problem))
        }
        (Some(asked), _) if asked > MOST => {
            Err(Error::argument(HELD_PICTURES, format!("{asked} is outside 0 to {MOST}")))
        }
        (Some(asked), _) => Ok(asked),
    }
}

fn within(option: &str, value: u64, most: u64) -> Result<u64> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::argument(option, format!("{value} is outside 1 to {most}")))
}
