//! Limits of an engine.

use super::Geometry;
use crate::error::{Error, Result};
use crate::kv::{PAGE_TOKENS, PoolPages};

/// What an engine may use. Memory and buffers follow from it, once, at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOptions {
    /// Requests that run at once.
    pub sequences: u64,
    /// Rows of a step at most.
    pub step_tokens: u64,
    /// Prompt rows of one sequence in a step at most.
    pub chunk_tokens: u64,
    /// Microseconds that a step should take at most while requests decode; prompt rows wait for it.
    /// `None` for as long as it takes.
    pub step_us: Option<u64>,
    /// Pages of the compressed caches, [`PAGE_TOKENS`] tokens each, for all requests together.
    pub pages: u64,
    /// Windows that the prefix cache keeps: points where other requests may go on. 0 for no prefix
    /// cache.
    pub resume_points: u64,
    /// How windows come about where a request goes on from the prefix cache.
    pub replay: Replay,
    /// Tokens of a request at most, prompt and answer, when less than the model's context.
    pub context_tokens: u64,
    /// Drafts verified a step, 0 for none: up to the model's block, or up to [`MAX_LOOKUP_TOKENS`]
    /// where they are looked up.
    pub draft_tokens: u64,
    /// Where drafts come from.
    pub drafts: DraftSource,
    /// Drafts of the model's stages are verified up to the first that is less likely than this to
    /// stand with all before it, as the stages' own confidence has it; 0 verifies them all. A draft
    /// pays when its chance is more than the time that its row takes costs in tokens. It is a
    /// fixed figure and not the step's own, so that an answer does not depend on what runs beside it.
    pub least_survival: f64,
    /// Whether prompt tokens skip the upper half where that changes nothing.
    pub skip_upper_half: bool,
    /// Numbers of sequences that steps without prompt rows, and drafts, are padded to, ascending
    /// and at most `sequences`. With none nothing is padded, and nothing captured.
    pub step_sizes: Vec<u64>,
    /// How those are captured.
    pub graphs: Graphs,
    /// Pictures whose rows are held at once; 0 when none are read. A request may have more: each is
    /// held from its first computed position to its last.
    pub pictures: u64,
    /// Ids of one request that may carry a logit bias.
    pub biases: u64,
    /// From which requests without a seed take theirs.
    pub seed: u64,
}

/// How windows come about where a request goes on from the prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// They are kept, or computed from as far back as they reach: the same bits as without a cache.
    #[default]
    Exact,
    /// They are computed from one window back and none is kept, whatever
    /// [`EngineOptions::resume_points`] says: less work and memory, but layers above the first see less
    /// than they would without a cache, so answers differ a little.
    Bounded,
}

/// Drafts that are looked up for a step at most: more would rarely stand.
pub const MAX_LOOKUP_TOKENS: u64 = 16;

/// Where drafts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DraftSource {
    /// The model's own draft stages.
    #[default]
    Dspark,
    /// What followed the last few tokens where they came before in the same request.
    Ngram,
}

/// How steps are captured. Results are the same to the bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Graphs {
    /// Each as one graph.
    #[default]
    Full,
    /// As graphs between the launches that look through the caches, which are queued one by one.
    Segments,
}

impl EngineOptions {
    /// Whether a model of this geometry can run under these limits.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the option and what would do.
    pub fn check(&self, geometry: &Geometry) -> Result<()> {
        let refuse = |option: &str, problem: String| Err(Error::argument(option, problem));
        let block = self.block(geometry);
        if self.draft_tokens > block {
            let asked = self.draft_tokens;
            let problem = match self.drafts {
                DraftSource::Dspark => {
                    format!("{asked} asked for, the model drafts blocks of {block}")
                }
                DraftSource::Ngram => format!("{asked} asked for, at most {block} are looked up"),
            };
            return refuse("draft tokens", problem);
        }
        if !(0.0..=1.0).contains(&self.least_survival) {
            return refuse("least survival", format!("{} is not from 0 to 1", self.least_survival));
        }
        if self.cuts_drafts() && self.drafts == DraftSource::Ngram {
            let problem =
                "only the model's own stages say how likely their drafts are; draft with them";
            return refuse("least survival", problem.into());
        }
        let decode = self.sequences * (1 + self.draft_tokens);
        if self.sequences == 0 || self.step_tokens < decode || self.chunk_tokens == 0 {
            let (sequences, tokens) = (self.sequences, self.step_tokens);
            return refuse(
                "step tokens",
                format!("{tokens} a step for {sequences} sequences; at least {decode}, and 1"),
            );
        }
        let ascending = self.step_sizes.is_sorted_by(|a, b| a < b);
        let (first, last) = (self.step_sizes.first(), self.step_sizes.last());
        if !ascending || first == Some(&0) || last.is_some_and(|size| *size > self.sequences) {
            let (sizes, most) = (&self.step_sizes, self.sequences);
            return refuse("step sizes", format!("{sizes:?}; they ascend from 1 to {most}"));
        }
        if self.pages == 0 || self.context_tokens == 0 {
            return refuse("cache", "no pages or no context; give at least one page".into());
        }
        // Addresses are 31-bit; the widest pages are those of one-token entries.
        if self.pages.checked_mul(PAGE_TOKENS).is_none_or(|entries| entries > i32::MAX as u64) {
            let problem = format!("{} pages have more entries than 31 bits address", self.pages);
            return refuse("cache", problem);
        }
        if self.picture_rows(geometry) > i32::MAX as u64 {
            let problem = format!("{} have more rows than 31 bits address", self.pictures);
            return refuse("pictures", problem);
        }
        Ok(())
    }

    /// Pages of each pool.
    pub fn pool_pages(&self, geometry: &Geometry) -> PoolPages {
        let pages = PoolPages::for_steps(
            self.pages,
            self.sequences,
            geometry.window_tokens,
            self.step_tokens,
            self.scratch_tokens(geometry),
        );
        if self.resume_points == 0 {
            return pages;
        }
        pages.with_resume_points(self.kept_windows(), self.sequences, geometry.window_tokens)
    }

    /// Windows that the prefix cache keeps.
    pub fn kept_windows(&self) -> u64 {
        match self.replay {
            Replay::Exact => self.resume_points,
            Replay::Bounded => 0,
        }
    }

    /// Outputs of a sequence that verifies drafts, less one, however many drafts it has.
    pub fn block(&self, geometry: &Geometry) -> u64 {
        match self.drafts {
            DraftSource::Dspark => geometry.draft_block,
            DraftSource::Ngram => self.draft_tokens.min(MAX_LOOKUP_TOKENS),
        }
    }

    /// Whether the draft stages run.
    pub fn runs_stages(&self) -> bool {
        self.draft_tokens > 0 && self.drafts == DraftSource::Dspark
    }

    /// Whether drafts that are unlikely to stand go unverified.
    pub fn cuts_drafts(&self) -> bool {
        self.draft_tokens > 0 && self.least_survival > 0.0
    }

    /// Window entries that draft stages use and no sequence owns.
    pub fn scratch_tokens(&self, geometry: &Geometry) -> u64 {
        if self.runs_stages() { self.sequences * geometry.draft_block } else { 0 }
    }

    /// Tokens that one request may have, prompt and answer.
    pub fn capacity_tokens(&self, geometry: &Geometry) -> u64 {
        let cache = self.pages * PAGE_TOKENS;
        cache.min(geometry.context_tokens).min(self.context_tokens)
    }

    /// What a step or draft of so many sequences is padded to, if a size is large enough.
    pub fn padded_sequences(&self, sequences: u64) -> Option<u64> {
        self.step_sizes.iter().copied().find(|size| *size >= sequences)
    }

    /// Outputs of the largest step.
    pub fn outputs(&self, geometry: &Geometry) -> u64 {
        self.sequences * (1 + self.block(geometry))
    }

    /// Rows of all pictures that are held at once.
    pub fn picture_rows(&self, geometry: &Geometry) -> u64 {
        geometry.pictures.map_or(0, |pictures| pictures.tokens.saturating_mul(self.pictures))
    }

    /// Columns of the largest page table.
    pub fn table_pages(&self, geometry: &Geometry) -> u64 {
        self.capacity_tokens(geometry).div_ceil(PAGE_TOKENS).next_power_of_two()
    }
}
