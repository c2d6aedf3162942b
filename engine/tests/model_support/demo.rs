//! The demo checkpoint, loaded.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Range;

use tandem_engine::Result;
use tandem_engine::exec::{Batch, DraftBatch, Drafted, EngineOptions, Geometry, Network};
use tandem_engine::model::v41::vision_tower::TowerWeights;
use tandem_engine::model::v41::{Config, ModelWeights, Resident};
use tandem_engine::weights::{Checkpoint, Content, Files, Share, Source};
use tandem_hal::{Device, Enc, Place, Stream, Tape, View};

use super::{DEMO, demo_config, demo_map};

/// The demo's weights; the draft stages' among them if `draft`.
pub fn weights(device: &dyn Device, config: &Config, draft: bool) -> ModelWeights {
    let checkpoint = Checkpoint::open(&Files::folder(DEMO)).unwrap();
    let map = demo_map(config);
    let what = (map.ids(), draft);
    ModelWeights::load(device, config, what, &source(&checkpoint), &mut |_| {}).unwrap()
}

/// The demo as an engine runs it: with the vision tower if `options` take pictures.
pub fn resident(device: &dyn Device, draft: bool, options: &EngineOptions) -> Resident {
    let config = demo_config();
    let weights = weights(device, &config, draft);
    let resident = Resident::new(device, &config, weights, options, 64 << 20).unwrap();
    if options.pictures == 0 {
        return resident;
    }
    let checkpoint = Checkpoint::open(&Files::folder(DEMO)).unwrap();
    let tower = TowerWeights::load(device, &config, &source(&checkpoint), &mut |_| {}).unwrap();
    resident.with_pictures(device, &config, tower, options).unwrap()
}

fn source(checkpoint: &Checkpoint) -> Source<'_> {
    Source { content: Content::Checkpoint(checkpoint), share: Share::WHOLE, tables: Place::Device }
}

/// Knows where the logits of every step lie, and that steps and drafts of equal shapes have
/// everything at equal addresses, which is what captured ones rely on.
pub struct Recorder {
    pub resident: Resident,
    /// Memory that a step computes anew, by reservation, once a step has run.
    scratch: RefCell<HashMap<u64, View>>,
    logits: RefCell<Option<View>>,
    /// As they print, by shape.
    addresses: RefCell<HashMap<[u64; 4], String>>,
}

impl Recorder {
    pub fn new(resident: Resident) -> Self {
        Self {
            resident,
            scratch: RefCell::default(),
            logits: RefCell::default(),
            addresses: RefCell::default(),
        }
    }

    /// The logits of the last step.
    pub fn last(&self) -> View {
        self.logits.borrow().clone().expect("steps and captures run the model")
    }

    /// Fills everything that a step computes anew with ones, NaN in every format; how many bytes.
    pub fn poison(&self, on: &dyn Stream) -> u64 {
        let scratch = self.scratch.borrow();
        scratch
            .values()
            .map(|all| {
                on.fill(all, 0xff).unwrap();
                all.bytes()
            })
            .sum()
    }

    /// Where launches of a step leave what only it needs.
    fn finds_scratch(&self, batch: &Batch) -> Result<()> {
        let tape = Tape::default();
        self.resident.forward(batch, &tape)?;
        let mut scratch = self.scratch.borrow_mut();
        for launch in tape.into_launches() {
            let allocs = launch.views().iter().chain([launch.workspace()]).map(View::alloc);
            for alloc in allocs.filter(|alloc| alloc.purpose.starts_with("scratch.")) {
                let all = View::dense(alloc, 0, Enc::U8, &[alloc.bytes])?;
                scratch.insert(alloc.id, all);
            }
        }
        Ok(())
    }

    fn stays(&self, shape: [u64; 4], operands: &dyn Debug) {
        let addresses = format!("{operands:?}");
        let mut known = self.addresses.borrow_mut();
        let first = known.entry(shape).or_insert_with(|| addresses.clone());
        assert_eq!(*first, addresses, "a step or draft has moved");
    }
}

impl Network for Recorder {
    fn geometry(&self) -> &Geometry {
        self.resident.geometry()
    }
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View> {
        if self.scratch.borrow().is_empty() {
            self.finds_scratch(batch)?;
        }
        let logits = self.resident.forward(batch, on)?;
        *self.logits.borrow_mut() = Some(logits.clone());
        // Others are never captured.
        if batch.upper.is_none() && batch.pictures.is_none() {
            let shape = [batch.tokens, batch.sequences, batch.outputs, batch.table.shape()[1]];
            self.stays(shape, &(batch, &logits));
        }
        Ok(logits)
    }
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<Drafted> {
        let drafted = self.resident.draft(batch, on)?;
        let operands = (batch, &drafted.hidden, &drafted.logits);
        self.stays([batch.tokens, batch.sequences, 0, 0], &operands);
        Ok(drafted)
    }
    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()> {
        self.resident.bias(previous, logits, on)
    }
    fn confidence(
        &self,
        drafted: &Drafted,
        rows: Range<u64>,
        tokens: (&View, &View),
        on: &dyn Stream,
    ) -> Result<()> {
        self.resident.confidence(drafted, rows, tokens, on)
    }
}
