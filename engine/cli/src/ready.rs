//! From arguments to an engine that is ready to run.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tandem_engine::exec::{Engine, EngineOptions, Ranks, Replay, Runner};
use tandem_engine::kv::PAGE_TOKENS;
use tandem_engine::model::v41::vision_tower::TowerWeights;
use tandem_engine::model::v41::{Config, ModelWeights, Resident, names};
use tandem_engine::plan::{PICTURES, tensor_parallel};
use tandem_engine::text::{EncodedPrompt, Prompt, Tokenizer, VocabularyMap};
use tandem_engine::weights::{self, Checkpoint, Content, Share};
use tandem_engine::{Error, Result};
use tandem_hal::{Device, Op, Place, Rule, Want};

use crate::arguments::Common;
use crate::backends;
use crate::console;
use crate::limits::{Limits, page_bytes};
use crate::model::Source;
use crate::progress::Progress;
use crate::rehearsal::Rehearsal;

/// Bytes for the indexer's scores of one step.
pub(crate) const SCORE_BUDGET_BYTES: u64 = 64 << 20;
/// More memory than any model needs, and far from the end of 64 bits.
pub(crate) const BOUNDLESS_BYTES: u64 = 1 << 60;
/// What the caches may lose between their parts.
const ALIGNMENT_BYTES: u64 = 1 << 20;
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
    /// Whether to load the vision tower, unless the user has said.
    pub(crate) pictures: Pictures,
    /// Whether prompts may begin alike, so that a prefix cache pays.
    pub(crate) alike: bool,
}

/// Whether to load the vision tower.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pictures {
    /// No picture will come.
    No,
    /// If the device has the kernels for it.
    WherePossible,
    /// A picture will come.
    Yes,
}

/// When to draft.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Drafts {
    /// Not on the host, where computing a draft costs more than it saves.
    WherePaying,
    /// Wherever the model can.
    Always,
    /// Nothing is generated.
    Never,
}

impl Work {
    /// One answer at a time.
    pub(crate) const ALONE: Self =
        Self { sequences: 1, drafts: Drafts::WherePaying, pictures: Pictures::No, alike: false };
}

/// A model that can be asked.
pub(crate) struct Ready {
    /// Where it came from.
    pub(crate) source: Source,
    /// Its tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The engine.
    pub(crate) engine: ModelEngine,
    /// How many devices of what architecture it runs on.
    pub(crate) devices: String,
}

impl Ready {
    /// Checks everything that can be checked without weights, then loads.
    ///
    /// # Errors
    /// Whatever is wrong with the arguments, the checkpoint or the devices.
    pub(crate) fn load(common: &Common, limits: &Limits, work: Work) -> Result<Self> {
        let source = Source::named(common.model.as_deref())?;
        let config = &source.config;
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
        let (devices, options) = backends::open_for(common, |devices| {
            let options = rehearsed(config, &map, &devices, limits, work)?;
            Ok((devices, options))
        })?;
        let build = Build::new(config, &map, &options, limits);
        let load = |(rank, device): (usize, &Arc<dyn Device>)| {
            let share = Share::new(rank as u64, devices.len() as u64)?;
            let mut runner = build.on(device, share, Content::Checkpoint(&checkpoint))?;
            runner.capture(&options)?;
            Ok(runner)
        };
        let ranks = devices.iter().enumerate().map(load).collect::<Result<_>>()?;
        let engine = Engine::new(Ranks::new(ranks), options)?;
        let devices = format!("{} x {}", devices.len(), devices[0].info().arch);
        Ok(Self { source, tokenizer, engine, devices })
    }

    /// What the bytes of its answers follow from, besides the checkpoint.
    pub(crate) fn numerics(&self) -> String {
        let fingerprint = self.engine.model().first().network().model().fingerprint();
        let bounded = if self.engine.options().replay == Replay::Bounded { "+bounded" } else { "" };
        format!("{fingerprint}{bounded}")
    }

    /// The prompt as ids; one that is surely too long is refused before it is encoded.
    ///
    /// # Errors
    /// The prompt is too long, or the tokenizer lacks a token of it.
    pub(crate) fn encode(&self, prompt: &Prompt) -> Result<EncodedPrompt> {
        self.engine.check_length(prompt.least_tokens(&self.tokenizer))?;
        // Without pictures there is nothing for the id to stand for.
        let image = self.source.config.image_token_id.unwrap_or_default();
        Ok(prompt.encode(&self.tokenizer, image)?)
    }
}

/// The options of an engine that fits on `devices` and has a kernel there for every operator.
fn rehearsed(
    config: &Config,
    map: &[i32],
    devices: &[Arc<dyn Device>],
    limits: &Limits,
    work: Work,
) -> Result<EngineOptions> {
    tensor_parallel::check("--device", config, devices.len())?;
    let on_host = devices[0].info().arch == HOST;
    let drafts = match work.drafts {
        Drafts::Never => Some(0),
        Drafts::WherePaying => on_host.then_some(0),
        Drafts::Always => None,
    };
    let open = if work.pictures == Pictures::No { 0 } else { PICTURES };
    let mut options = limits.options(config, (work.sequences, drafts, open), fresh_seed())?;
    if !work.alike {
        options.resume_points = 0;
    }
    // Sequences share the pages that there is room for; one of them can have a full context.
    let most = options.pages;
    let least = options.context_tokens.div_ceil(PAGE_TOKENS).min(most);
    if limits.kv_cache_memory_bytes.is_none() {
        options.pages = least;
    }
    let may_lack_pictures = work.pictures == Pictures::WherePossible
        && limits.max_pictures.is_none()
        && options.pictures > 0;
    let rehearse = |options: &EngineOptions| {
        Build::new(config, map, options, limits).rehearse(devices, limits)
    };
    let left_bytes = match rehearse(&options) {
        Err(error) if may_lack_pictures && backends::lacks_kernel(&error) => {
            options.pictures = 0;
            let left_bytes = rehearse(&options)?;
            console::note(&format!("pictures are refused: {error}"));
            left_bytes
        }
        rehearsed => rehearsed?,
    };
    if options.pages < most && limits.kv_cache_memory_bytes.is_none() {
        let further = left_bytes.saturating_sub(ALIGNMENT_BYTES) / page_bytes(config);
        options.pages = most.min(least + further);
        rehearse(&options)?;
    }
    Ok(options)
}

/// How a model is put on a device.
struct Build<'a> {
    config: &'a Config,
    /// Compressed id of each token id; empty without n-gram memory.
    map: &'a [i32],
    options: &'a EngineOptions,
    rule: Rule,
    tables: Place,
}

impl<'a> Build<'a> {
    fn new(
        config: &'a Config,
        map: &'a [i32],
        options: &'a EngineOptions,
        limits: &Limits,
    ) -> Self {
        Self { config, map, options, rule: limits.rule(), tables: limits.tables() }
    }

    /// Reads the weights of a rank, or leaves them unspecified, and plans every launch.
    fn on(
        &self,
        device: &Arc<dyn Device>,
        share: Share,
        content: Content<'_>,
    ) -> Result<Runner<Resident>> {
        let Self { config, map, options, rule, tables } = *self;
        let source = weights::Source { content, share, tables };
        let mut progress = Progress::new("loading weights");
        let mut show = |p: weights::Progress| progress.show(p.done_bytes, p.total_bytes);
        let draft = options.runs_stages();
        let weights =
            ModelWeights::load(device.as_ref(), config, (map, draft), &source, &mut show)?;
        let budget = SCORE_BUDGET_BYTES;
        let mut resident = Resident::new(device.as_ref(), config, weights, options, budget)?;
        if options.pictures > 0 {
            let mut progress = Progress::new("loading the vision tower");
            let mut show = |p: weights::Progress| progress.show(p.done_bytes, p.total_bytes);
            let tower = TowerWeights::load(device.as_ref(), config, &source, &mut show)?;
            resident = resident.with_pictures(device.as_ref(), config, tower, options)?;
        }
        Runner::new(device, resident, options, rule)
    }

    /// All of it but the weights: what does not fit or has no kernel is known before any is read.
    /// Answers how many bytes are left where the fewest are.
    fn rehearse(&self, devices: &[Arc<dyn Device>], limits: &Limits) -> Result<u64> {
        let mut least_left = u64::MAX;
        for (rank, device) in devices.iter().enumerate() {
            let usable_bytes = limits.usable_bytes(device.info().memory_bytes)?;
            let device: Arc<dyn Device> = Arc::new(Rehearsal::new(device.clone(), usable_bytes));
            let share = Share::new(rank as u64, devices.len() as u64)?;
            // Alive until its bytes are counted.
            let ready = self.on(&device, share, Content::Unspecified);
            let _ready = ready.map_err(|error| with_remedy(error, device.as_ref()))?;
            let lines = device.ledger().into_iter().filter(|line| line.place == Place::Device);
            let taken: u64 = lines.map(|line| line.bytes).sum();
            least_left = least_left.min(usable_bytes.saturating_sub(taken));
        }
        Ok(least_left)
    }
}

/// A model that is too large for a device, with what would help.
fn with_remedy(error: Error, device: &dyn Device) -> Error {
    let Error::Device(tandem_hal::Error::OutOfMemory { wanted, free, purpose }) = error else {
        return error;
    };
    let (name, usable) = (&device.info().name, device.info().memory_bytes);
    let problem = format!(
        "{usable} bytes of {name} may be filled; with {free} left, {purpose} needs {wanted}; give \
         smaller --max-model-len, --max-num-seqs, --max-num-batched-tokens or --max-pictures, or \
         more devices"
    );
    Error::DoesNotFit { problem }
}

/// Every operator that a model plans on a device, with weights, caches and steps as `limits` say;
/// from its configuration alone, however little memory there is.
///
/// # Errors
/// When the device has no kernel for one, or `limits` cannot be honoured.
pub(crate) fn operators(
    device: &Arc<dyn Device>,
    config: &Config,
    limits: &Limits,
) -> Result<Vec<(Op, Want)>> {
    let options = limits.options(config, (Work::ALONE.sequences, None, 0), 0)?;
    let map = vec![0; config.engram.as_ref().map_or(0, |_| config.vocab_size)];
    let build = Build::new(config, &map, &options, limits);
    let rehearsal = Arc::new(Rehearsal::new(device.clone(), BOUNDLESS_BYTES));
    let device: Arc<dyn Device> = rehearsal.clone();
    build.on(&device, Share::WHOLE, Content::Unspecified)?;
    Ok(rehearsal.asked())
}

/// For requests that name no seed.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}
