//! The sequence engine's model on a device: lists up, kernels, tokens down.

use super::captured::Captured;
use super::step_buffer::StepBuffer;
use super::{
    DraftBatch, DraftLists, Drafter, EngineOptions, Forward, Geometry, Network, Sample, Sampled,
    StepLists, StepShape,
};
use crate::error::{Error, Result};
use crate::kv::{PageKind, PageMemory};
use crate::sample::{Sampler, read};
use crate::spec::{DraftSampler, StagedDraft};
use crate::vision::PictureInput;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_hal::{Device, Rule, Stream, View};

/// Runs steps of a [`Network`]. Everything is reserved and planned when it is made.
pub struct Runner<N: Network> {
    device: Arc<dyn Device>,
    network: N,
    stream: Box<dyn Stream>,
    buffer: StepBuffer,
    sampler: Sampler,
    drafts: DraftSampler,
    /// With the logits that they leave.
    captured_steps: HashMap<StepShape, Captured<View>>,
    /// By sequences; they leave drafts drawn.
    captured_drafts: HashMap<u64, Captured<()>>,
    replays: u64,
}

impl<N: Network> Runner<N> {
    /// For steps within `options`; `rule` says when drafts of sampled requests stand. Greedy ones
    /// stand while they equal the largest logit under any rule.
    ///
    /// # Errors
    /// When memory runs out or the device has no kernel for an operator.
    pub fn new(
        device: &Arc<dyn Device>,
        network: N,
        options: &EngineOptions,
        rule: Rule,
    ) -> Result<Self> {
        let geometry = network.geometry();
        options.check(geometry)?;
        Ok(Self {
            device: Arc::clone(device),
            stream: device.stream()?,
            buffer: StepBuffer::new(device.as_ref(), geometry, options, network.picture_rows())?,
            sampler: Sampler::new(device.as_ref(), geometry, options, rule)?,
            drafts: DraftSampler::new(device.as_ref(), geometry, options)?,
            network,
            captured_steps: HashMap::new(),
            captured_drafts: HashMap::new(),
            replays: 0,
        })
    }

    /// Captures every step without prompt rows and every draft that `options`, those it was made
    /// with, pad to. Without it, and for all other steps, launches are queued one by one; results
    /// are the same to the bit.
    ///
    /// # Errors
    /// When the device fails or cannot capture.
    pub fn capture(&mut self, options: &EngineOptions) -> Result<()> {
        let (on, geometry) = (self.stream.as_ref(), self.network.geometry().clone());
        for shape in StepShape::all(options, &geometry) {
            let batch = self.buffer.upload(&StepLists::padding(shape, &geometry), on)?;
            let forward = |on: &dyn Stream| self.network.forward(&batch, on);
            let captured = Captured::new(on, options.graphs, forward)?;
            self.captured_steps.insert(shape, captured);
        }
        let sizes = if options.runs_stages() { options.step_sizes.as_slice() } else { &[] };
        for &sequences in sizes {
            let lists = DraftLists::new(&[], sequences, &[], &geometry);
            let batch = self.buffer.upload_draft(&lists, on)?;
            let staged = self.drafts.stage(&[], sequences, on)?;
            let draft = |on: &dyn Stream| self.launch_draft(&batch, &staged, on);
            let captured = Captured::new(on, options.graphs, draft)?;
            self.captured_drafts.insert(sequences, captured);
        }
        Ok(())
    }

    /// Steps and drafts that ran as captured.
    pub fn replays(&self) -> u64 {
        self.replays
    }

    /// Graphs of all captured steps and drafts, and launches queued between them.
    pub fn captured(&self) -> (usize, usize) {
        let steps = self.captured_steps.values().map(Captured::counts);
        let drafts = self.captured_drafts.values().map(Captured::counts);
        steps.chain(drafts).fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
    }

    /// The model.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// What it runs on.
    pub fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// The queue that steps run on.
    pub fn stream(&self) -> &dyn Stream {
        self.stream.as_ref()
    }

    fn launch_draft(
        &self,
        batch: &DraftBatch,
        staged: &StagedDraft,
        on: &dyn Stream,
    ) -> Result<()> {
        self.drafts.draw(&self.network, batch, staged, on)
    }
}

impl<N: Network> Forward for Runner<N> {
    fn geometry(&self) -> &Geometry {
        self.network.geometry()
    }

    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        let on = self.stream.as_ref();
        let batch = self.buffer.upload(lists, on)?;
        let rows = batch.upper.as_ref().map_or(&batch, |upper| &upper.rows);
        let staged = self.sampler.stage(samples, rows.outputs, on)?;
        let captured = lists.shape().and_then(|shape| self.captured_steps.get(&shape));
        let logits = match captured {
            Some(captured) => {
                self.replays += 1;
                captured.replay(on)?.clone()
            }
            None => self.network.forward(&batch, on)?,
        };
        self.sampler.sample(&logits, samples, (&staged, self.drafts.laws()), on)
    }

    fn hidden(&mut self, lists: &StepLists) -> Result<Vec<f32>> {
        let on = self.stream.as_ref();
        let batch = self.buffer.upload(lists, on)?;
        let mut states = Vec::new();
        self.network.hidden(&batch, on, &mut |rows| {
            states.extend(read::bf16(rows, on)?);
            Ok(())
        })?;
        Ok(states)
    }

    fn replays(&self) -> u64 {
        self.replays
    }

    fn page_memory(&mut self) -> Option<&mut dyn PageMemory> {
        let is_readable = !self.network.caches(PageKind::Compressed).is_empty();
        is_readable.then_some(self as &mut dyn PageMemory)
    }

    fn picture(&mut self, input: &PictureInput, first_row: u64) -> Result<()> {
        self.network.picture(input, first_row, self.stream.as_ref())
    }

    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        let on = self.stream.as_ref();
        let batch = self.buffer.upload_draft(lists, on)?;
        let staged = self.drafts.stage(drafters, batch.sequences, on)?;
        match self.captured_drafts.get(&batch.sequences) {
            Some(captured) => {
                self.replays += 1;
                captured.replay(on)?;
            }
            None => self.launch_draft(&batch, &staged, on)?,
        }
        self.drafts.read(drafters.len(), on)
    }
}

impl<N: Network> PageMemory for Runner<N> {
    fn page_bytes(&mut self, kind: PageKind) -> u64 {
        let pages_of = |view: &View| view.shape()[0].max(1);
        self.network.caches(kind).iter().map(|view| view.bytes() / pages_of(view)).sum()
    }

    fn read_page(&mut self, kind: PageKind, page: u32) -> Result<Vec<u8>> {
        let page = u64::from(page);
        let mut bytes = Vec::new();
        for cache in self.network.caches(kind) {
            bytes.extend(self.stream.read(&cache.rows(page..page + 1)?)?);
        }
        Ok(bytes)
    }

    fn write_page(&mut self, kind: PageKind, page: u32, bytes: &[u8]) -> Result<()> {
        let page = u64::from(page);
        let mut left = bytes;
        for cache in self.network.caches(kind) {
            let cache = cache.rows(page..page + 1)?;
            let short = || Error::Internal { invariant: "a page has all its bytes".into() };
            let (own, others) = left.split_at_checked(cache.bytes() as usize).ok_or_else(short)?;
            self.stream.write(&cache, own)?;
            left = others;
        }
        Ok(())
    }
}
