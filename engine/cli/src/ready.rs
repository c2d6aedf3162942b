//! From arguments to an engine that is ready to run.

use std::time::{SystemTime, UNIX_EPOCH};

use tandem_engine::Result;
use tandem_engine::exec::{Engine, Ranks, Runner};
use tandem_engine::model::v41::{ModelWeights, Resident, names};
use tandem_engine::text::{Tokenizer, VocabularyMap};
use tandem_engine::weights::{self, Checkpoint, Share};
use tandem_hal::Place;

use crate::arguments::Common;
use crate::backends;
use crate::limits::Limits;
use crate::model::Source;
use crate::progress::Progress;

/// Bytes for the indexer's scores of one step.
const SCORE_BUDGET_BYTES: u64 = 64 << 20;
/// The architecture of devices that compute on the processor.
const HOST: &str = "host";

/// An engine over a model that lies on its devices.
pub(crate) type ModelEngine = Engine<Ranks<Runner<Resident>>>;

/// What a command wants of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// Sequences that run at once.
    pub(crate) sequences: u64,
    /// When to draft, unless the user has said.
    pub(crate) drafts: Drafts,
}

/// When to draft.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Drafts {
    /// Not on the host, where computing a draft costs more than it saves.
    WherePaying,
    /// Wherever the model can.
    Always,
}

impl Work {
    /// One answer at a time.
    pub(crate) const ALONE: Self = Self { sequences: 1, drafts: Drafts::WherePaying };
}

/// A model that can be asked.
pub(crate) struct Ready {
    /// Where it came from.
    pub(crate) source: Source,
    /// Its tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The engine.
    pub(crate) engine: ModelEngine,
}

impl Ready {
    /// Checks everything that can be checked without weights, then loads.
    ///
    /// # Errors
    /// Whatever is wrong with the arguments, the checkpoint or the devices.
    pub(crate) fn load(common: &Common, limits: &Limits, work: Work) -> Result<Self> {
        let source = Source::named(common.model.as_deref())?;
        let config = &source.config;
        let devices = backends::open(common)?;
        let on_host = devices[0].info().arch == HOST;
        let drafts = (on_host && work.drafts == Drafts::WherePaying).then_some(0);
        let options = limits.options(config, (work.sequences, drafts), fresh_seed())?;
        let checkpoint = Checkpoint::open(&source.files)?;
        names::check(config, &checkpoint)?;
        let tokenizer = source.tokenizer()?;
        let map = match &config.engram {
            Some(engram) => {
                let classes = engram.compressed_vocab_size as usize;
                VocabularyMap::new(&tokenizer, classes)?.ids().to_vec()
            }
            None => Vec::new(),
        };
        let draft = options.draft_tokens > 0;
        let mut ranks = Vec::with_capacity(devices.len());
        for (rank, device) in devices.iter().enumerate() {
            let share = Share::new(rank as u64, devices.len() as u64)?;
            let from =
                weights::Source { checkpoint: Some(&checkpoint), share, tables: Place::Device };
            let mut progress = Progress::new("loading weights");
            let mut show = |p: weights::Progress| progress.show(p.done_bytes, p.total_bytes);
            let device_weights =
                ModelWeights::load(device.as_ref(), config, (&map, draft), &from, &mut show)?;
            let resident = Resident::new(
                device.as_ref(),
                config,
                device_weights,
                &options,
                SCORE_BUDGET_BYTES,
            )?;
            ranks.push(Runner::new(device, resident, &options, limits.rule())?);
        }
        let engine = Engine::new(Ranks::new(ranks), options)?;
        Ok(Self { source, tokenizer, engine })
    }
}

/// For requests that name no seed.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}
