//! Limits of the engine, in the spelling of the servers its users know.

use std::iter::successors;

use clap::Args;
use tandem_engine::exec::{DraftSource, EngineOptions, Graphs, MAX_LOOKUP_TOKENS, Replay};
use tandem_engine::kv::PAGE_TOKENS;
use tandem_engine::model::v41::Config;
use tandem_engine::model::v41::ledger::CacheLedger;
use tandem_engine::plan::{self, Placement};
use tandem_engine::{Error, Result};
use tandem_hal::{Place, Rule};

use crate::drafting::{Drafting, LEAST_SURVIVAL, Source};

/// Drafts that are looked up for a step, unless the user has said.
const LOOKUP_TOKENS: i64 = 5;

/// What the engine may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct Limits {
    /// Longest sequence, prompt and answer together; the model's own limit if left out
    #[arg(short = 'c', long, visible_alias = "ctx-size", value_name = "TOKENS")]
    pub(crate) max_model_len: Option<u64>,
    /// Tokens of one step
    #[arg(long, value_name = "TOKENS", default_value_t = 256)]
    pub(crate) max_num_batched_tokens: u64,
    /// Milliseconds that a step should take at most while answers are generated: prompts are computed
    /// in smaller pieces then; as long as it takes if left out
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_step_ms: Option<u64>,
    /// Bytes of a device's memory for cache pages, which all sequences share; what the memory that
    /// may be filled leaves if left out, a full context for each sequence at most
    #[arg(long, value_name = "BYTES")]
    pub(crate) kv_cache_memory_bytes: Option<u64>,
    /// "exact" to keep what prompts and answers left in the caches for those that begin alike, the
    /// same bits as without; "bounded" to compute no more than one window again where they go on,
    /// which is less work but not the same bits, and told in usage; or "off"
    #[arg(
        long,
        value_name = "HOW",
        default_value = "exact",
        value_parser = ["exact", "bounded", "off"]
    )]
    pub(crate) prefix_cache: String,
    /// Points of earlier prompts and answers from which later ones may go on; 4 for each sequence if
    /// left out
    #[arg(long, value_name = "POINTS", value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    pub(crate) resume_points: Option<u64>,
    /// Part of a device's memory that may be filled, above 0 and up to 1
    #[arg(long, value_name = "PART", default_value_t = 0.9)]
    pub(crate) gpu_memory_utilization: f64,
    /// Pictures whose rows are held at once while their prompts are computed, 0 to leave the vision
    /// tower out; 2 if left out
    #[arg(long, value_name = "PICTURES")]
    pub(crate) max_pictures: Option<u64>,
    /// Leave the vision tower out, as --max-pictures 0
    #[arg(long, conflicts_with = "max_pictures")]
    pub(crate) language_model_only: bool,
    /// Draft tokens a step, 0 for none; the trained block if left out, but none on the reference
    /// device, where computing a draft costs more than it saves
    #[arg(
        long,
        visible_alias = "draft",
        value_name = "TOKENS",
        conflicts_with = "speculative_config"
    )]
    pub(crate) draft_max: Option<i64>,
    /// Where drafts come from: "dspark", the model's draft stages, "ngram", what followed the last
    /// tokens where they came before in the same request, or "off"; greedy answers are the same.
    /// "dspark:3" for so many a step; "dspark,adaptive" to leave those unverified that are unlikely
    /// to stand
    #[arg(long, visible_alias = "speculative", value_name = "FROM", value_parser = Drafting::short)]
    #[arg(conflicts_with = "speculative_config")]
    pub(crate) drafts: Option<Drafting>,
    /// How likely a draft must be to stand with all before it, by the model's own confidence, to be
    /// verified; makes drafting adaptive, which means 0.3 if this is left out. Lower where a row more costs
    /// a step little, as on a device that waits for its memory; higher where steps are full
    #[arg(long, value_name = "CHANCE", value_parser = chance)]
    pub(crate) draft_p_min: Option<f64>,
    /// Drafting as JSON: method (dspark or ngram), num_speculative_tokens, rejection_sample_method
    /// (block or standard), enable_adaptive_verification
    #[arg(long, value_name = "JSON", value_parser = Drafting::json)]
    pub(crate) speculative_config: Option<Drafting>,
    /// Launch kernels one by one instead of replaying steps captured at the start; the same bits
    #[arg(long)]
    pub(crate) enforce_eager: bool,
    /// How steps are captured: "full", each as one graph, or "segments", as graphs between the
    /// launches of indexer and attention; the same bits
    #[arg(long, value_name = "HOW", default_value = "full", value_parser = graphs)]
    #[arg(conflicts_with = "enforce_eager")]
    pub(crate) graphs: Graphs,
    /// Where the n-gram tables lie: {"cpu_offload": true} for the host, as if left out, false for
    /// the device
    #[arg(long, value_name = "JSON", value_parser = engram_config)]
    pub(crate) engram_config: Option<Placement>,
}

/// Where n-gram tables lie, as JSON.
pub(crate) fn engram_config(text: &str) -> std::result::Result<Placement, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let keys = value.as_object().ok_or("must be an object")?;
    match (keys.len(), keys.get("cpu_offload").and_then(serde_json::Value::as_bool)) {
        (1, Some(true)) => Ok(Placement::Host),
        (1, Some(false)) => Ok(Placement::Device),
        _ => Err("the one key is cpu_offload, true or false".to_owned()),
    }
}

fn chance(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(chance),
        _ => Err("is no number from 0 to 1".to_owned()),
    }
}

fn graphs(text: &str) -> std::result::Result<Graphs, String> {
    match text {
        "full" => Ok(Graphs::Full),
        "segments" => Ok(Graphs::Segments),
        _ => Err("is neither full nor segments".to_owned()),
    }
}

impl Limits {
    /// Where the n-gram tables lie.
    pub(crate) fn tables(&self) -> Place {
        match self.engram_config.unwrap_or(Placement::Host) {
            Placement::Device => Place::Device,
            Placement::Host => Place::Pinned,
        }
    }

    /// When drafts of sampled requests stand.
    pub(crate) fn rule(&self) -> Rule {
        self.drafting().rule.unwrap_or(Rule::Block)
    }

    fn drafting(&self) -> Drafting {
        self.drafts.or(self.speculative_config).unwrap_or_default()
    }

    /// Where drafts come from.
    fn source(&self) -> DraftSource {
        match self.drafting().source {
            Some(Source::From(source)) => source,
            _ => DraftSource::default(),
        }
    }

    /// How likely drafts must be to stand to be verified.
    ///
    /// # Errors
    /// [`Error::Argument`] for drafts of which nothing says how likely they are.
    fn least_survival(&self) -> Result<f64> {
        let drafting = self.drafting();
        let is_stages = matches!(drafting.source, None | Some(Source::From(DraftSource::Dspark)));
        match self.draft_p_min {
            Some(_) if !is_stages => {
                let problem =
                    "only the model's own stages say how likely their drafts are; leave it out";
                Err(Error::Argument { argument: "--draft-p-min".into(), problem: problem.into() })
            }
            Some(chance) => Ok(chance),
            None => Ok(if drafting.adaptive { LEAST_SURVIVAL } else { 0.0 }),
        }
    }

    /// Drafts a step: what the user says, else `open`.
    ///
    /// # Errors
    /// [`Error::Argument`] for more than can be drafted.
    fn draft_tokens(&self, config: &Config, open: Option<i64>) -> Result<u64> {
        let Drafting { source, tokens, .. } = self.drafting();
        if let (Some(most), Some(tokens)) = (self.draft_max, tokens)
            && most != tokens
        {
            let problem = format!("{most}, but --drafts says {tokens}; give one of them");
            return Err(Error::Argument { argument: "--draft-max".into(), problem });
        }
        let asked = self.draft_max.or(tokens);
        match source {
            Some(Source::Off) => Ok(0),
            None => Ok(config.draft_tokens(asked.or(open))? as u64),
            // Whoever asks for them gets them, on any device.
            Some(Source::From(DraftSource::Dspark)) => Ok(config.draft_tokens(asked)? as u64),
            Some(Source::From(DraftSource::Ngram)) => {
                let tokens = u64::try_from(asked.unwrap_or(LOOKUP_TOKENS)).unwrap_or(u64::MAX);
                within("--draft-max", tokens, 0, MAX_LOOKUP_TOKENS)
            }
        }
    }

    /// Bytes that may be filled of a device with `memory_bytes`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a part that is none.
    pub(crate) fn usable_bytes(&self, memory_bytes: u64) -> Result<u64> {
        let part = self.gpu_memory_utilization;
        if part > 0.0 && part <= 1.0 {
            return Ok((memory_bytes as f64 * part) as u64);
        }
        let problem = format!("{part} is not above 0 and up to 1");
        Err(Error::Argument { argument: "--gpu-memory-utilization".into(), problem })
    }

    /// Pages that are asked for, or a full context for each sequence.
    fn pages(&self, config: &Config, sequences: u64, context_tokens: u64) -> Result<u64> {
        let full = sequences.saturating_mul(context_tokens.div_ceil(PAGE_TOKENS));
        let Some(bytes) = self.kv_cache_memory_bytes else { return Ok(full) };
        let page_bytes = page_bytes(config);
        if bytes < page_bytes {
            let problem = format!("{bytes} hold no page of {page_bytes}");
            return Err(Error::Argument { argument: "--kv-cache-memory-bytes".into(), problem });
        }
        Ok(full.min(bytes / page_bytes))
    }

    /// Pictures held at once: what the user says, else `open` where the model reads any.
    fn pictures(&self, config: &Config, open: u64) -> Result<u64> {
        let asked = if self.language_model_only { Some(0) } else { self.max_pictures };
        plan::pictures(config, asked, open)
    }

    /// The engine's options for a model that runs `sequences` at once and, unless the user has
    /// said otherwise, drafts `drafts` tokens a step (`None` for the trained block) and holds
    /// `pictures`.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the flag that cannot be honoured.
    pub(crate) fn options(
        &self,
        config: &Config,
        (sequences, drafts, pictures): (u64, Option<i64>, u64),
        seed: u64,
    ) -> Result<EngineOptions> {
        let longest = config.max_position_tokens as u64;
        let sequences = within("--max-num-seqs", sequences, 1, 1 << 16)?;
        let draft_tokens = self.draft_tokens(config, drafts)?;
        let context = self.max_model_len.unwrap_or(longest);
        let context_tokens = within("--max-model-len", context, 2, longest)?;
        let (least, most) = (sequences * (1 + draft_tokens), 1 << 20);
        let step_tokens =
            within("--max-num-batched-tokens", self.max_num_batched_tokens, least, most)?;
        Ok(EngineOptions {
            sequences,
            step_tokens,
            chunk_tokens: step_tokens,
            step_us: self.max_step_ms.map(|ms| ms.saturating_mul(1000)),
            resume_points: match self.prefix_cache.as_str() {
                "off" => 0,
                _ => self.resume_points.unwrap_or(4 * sequences),
            },
            replay: match self.prefix_cache.as_str() {
                "bounded" => Replay::Bounded,
                _ => Replay::Exact,
            },
            pages: self.pages(config, sequences, context_tokens)?,
            context_tokens,
            draft_tokens,
            drafts: self.source(),
            least_survival: self.least_survival()?,
            skip_upper_half: true,
            step_sizes: if self.enforce_eager { Vec::new() } else { doublings(sequences) },
            pictures: self.pictures(config, pictures)?,
            graphs: self.graphs,
            biases: 300,
            seed,
        })
    }
}

/// Bytes of a page of all compressed caches.
pub(crate) fn page_bytes(config: &Config) -> u64 {
    CacheLedger::of(config).compressed_bytes(PAGE_TOKENS)
}

/// 1, 2, 4 and so on, then `most` itself.
fn doublings(most: u64) -> Vec<u64> {
    let powers = successors(Some(1), |size| Some(size * 2));
    powers.take_while(|size| *size < most).chain([most]).collect()
}

fn within(flag: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let problem = format!("{value} is outside {least} to {most}");
    Err(Error::Argument { argument: flag.into(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double_up_to_the_most() {
        assert_eq!(doublings(1), [1]);
        assert_eq!(doublings(4), [1, 2, 4]);
        assert_eq!(doublings(6), [1, 2, 4, 6]);
    }
}
