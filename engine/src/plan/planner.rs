//! Does it fit, and how many tokens: the sums.

use super::board::{Boards, Placement};
use super::rank::{self, Item, Weights};
use super::request::{Limits, Request};
use super::sequence::SequencePages;
use super::{tensor_parallel, workspace};
use crate::error::{Error, Result};
use crate::model::v41::{Config, Ledger};

/// The memory of one rank, line by line. It prints as an aligned text.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Boards of the node.
    pub boards: Boards,
    /// The choices made.
    pub limits: Limits,
    /// Copies of the model on the boards.
    pub replicas: usize,
    /// The checkpoint's bytes.
    pub ledger: Ledger,
    /// Weights of a rank and of the host.
    pub weights: Weights,
    /// Buffers of a step on a rank.
    pub workspace: Vec<Item>,
    /// Page sizes of a sequence.
    pub pages: SequencePages,
    /// Bytes of a rank the engine may fill.
    pub usable_bytes: u64,
    /// Bytes that are there whatever the sequences' lengths: weights, workspace and the windows of
    /// all sequences.
    pub fixed_bytes: u64,
    /// Compressed bytes of one sequence of the longest length.
    pub context_bytes: u64,
    /// Tokens that the rest holds in compressed pages, over all sequences of a replica.
    pub cache_tokens: u64,
    /// What else would fit, when this does not.
    pub remedies: Vec<String>,
}

impl Plan {
    /// Whether a rank holds the fixed bytes and one sequence of the longest length.
    pub fn fits(&self) -> bool {
        self.needed_bytes() <= self.usable_bytes
    }

    /// Bytes a rank needs at least.
    pub fn needed_bytes(&self) -> u64 {
        self.fixed_bytes + self.context_bytes
    }

    /// Bytes left for compressed pages.
    pub fn cache_bytes(&self) -> u64 {
        self.usable_bytes.saturating_sub(self.fixed_bytes)
    }

    /// Windows of all sequences.
    pub fn window_bytes(&self) -> u64 {
        self.limits.sequences * self.pages.fixed_bytes()
    }

    /// Weights of a rank.
    pub fn weight_bytes(&self) -> u64 {
        sum(&self.weights.device)
    }

    /// Buffers of a step.
    pub fn workspace_bytes(&self) -> u64 {
        sum(&self.workspace)
    }

    /// Refuses a plan that does not fit.
    ///
    /// # Errors
    /// One line with the sums, what is short and what would fit.
    pub fn require_fit(&self) -> Result<()> {
        if self.fits() {
            return Ok(());
        }
        let remedy = match self.remedies.as_slice() {
            [] => "no setting on these boards fits".to_owned(),
            remedies => format!("what fits: {}", remedies.join(", or ")),
        };
        Err(Error::DoesNotFit {
            problem: format!(
                "a rank of {} (tensor parallel {}) needs {} (weights {}, workspace {}, windows of \
                 {} sequences {}, one sequence of {} tokens {}) and may fill {} of {}: {} short; \
                 {remedy}",
                self.boards.board.name,
                self.limits.tensor_parallel,
                gib(self.needed_bytes()),
                gib(self.weight_bytes()),
                gib(self.workspace_bytes()),
                self.limits.sequences,
                gib(self.window_bytes()),
                self.limits.context_tokens,
                gib(self.context_bytes),
                gib(self.usable_bytes),
                gib(self.boards.board.memory_bytes),
                gib(self.needed_bytes() - self.usable_bytes),
            ),
        })
    }
}

/// Plans a model on boards. A model that does not fit gives a plan too, to be printed;
/// [`Plan::require_fit`] is the verdict.
///
/// # Errors
/// Options that cannot be honoured, whatever the memory.
pub fn plan(config: &Config, request: &Request) -> Result<Plan> {
    let mut plan = sums(config, request, request.limits(config)?)?;
    if !plan.fits() {
        plan.remedies = remedies(config, request, &plan.limits);
    }
    Ok(plan)
}

fn sums(config: &Config, request: &Request, limits: Limits) -> Result<Plan> {
    let ledger = Ledger::of(config);
    let weights = rank::weights(config, &limits);
    let workspace = workspace::workspace(config, &limits)?;
    let mut caches = ledger.caches.clone();
    if limits.draft_tokens == 0 {
        caches.window_layers = config.layers as u64;
    }
    let pages = SequencePages::new(&caches, limits.draft_tokens);
    let fixed_bytes =
        sum(&weights.device) + sum(&workspace) + limits.sequences * pages.fixed_bytes();
    let usable_bytes = (request.boards.board.memory_bytes as f64 * limits.utilisation) as u64;
    Ok(Plan {
        replicas: request.boards.count / limits.tensor_parallel,
        context_bytes: pages.compressed_bytes(limits.context_tokens),
        cache_tokens: pages.tokens_in(usable_bytes.saturating_sub(fixed_bytes)),
        boards: request.boards.clone(),
        limits,
        ledger,
        weights,
        workspace,
        pages,
        usable_bytes,
        fixed_bytes,
        remedies: Vec::new(),
    })
}

/// The smallest change of each kind that fits: tables to the host, more ranks, fewer sequences with
/// smaller steps.
fn remedies(config: &Config, request: &Request, limits: &Limits) -> Vec<String> {
    let mut remedies = Vec::new();
    let fits = |limits: Limits| sums(config, request, limits).is_ok_and(|plan| plan.fits());
    if limits.engram == Placement::Device
        && fits(Limits { engram: Placement::Host, ..limits.clone() })
    {
        remedies.push("Engram tables on the host".to_owned());
    }
    let more = tensor_parallel::working(config)
        .filter(|ranks| *ranks > limits.tensor_parallel)
        .find(|ranks| fits(Limits { tensor_parallel: *ranks, ..limits.clone() }));
    if let Some(ranks) = more {
        let boards = match request.boards.count {
            count if count.is_multiple_of(ranks) => String::new(),
            _ => format!(" on {ranks} boards"),
        };
        remedies.push(format!("tensor parallel {ranks}{boards}"));
    }
    let smaller = (0..limits.sequences.ilog2())
        .map(|halvings| limits.sequences >> (halvings + 1))
        .map(|sequences| {
            let step_tokens = limits.step_tokens.min(8192);
            Limits { sequences, step_tokens, ..limits.clone() }
        })
        .find(|limits| fits(limits.clone()));
    if let Some(Limits { sequences, step_tokens, .. }) = smaller {
        remedies.push(format!("{sequences} sequences with steps of {step_tokens} tokens"));
    }
    remedies
}

fn sum(items: &[Item]) -> u64 {
    items.iter().map(|item| item.bytes).sum()
}

/// Bytes in GiB with one decimal.
pub(super) fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
