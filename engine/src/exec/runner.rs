//! The sequence engine's model on a device: lists up, kernels, tokens down.

use super::step_buffer::StepBuffer;
use super::{
    DraftLists, Drafter, EngineOptions, Forward, Geometry, Network, Sample, Sampled, StepLists,
};
use crate::error::Result;
use crate::sample::Sampler;
use crate::spec::DraftSampler;
use std::sync::Arc;
use tandem_hal::{Device, Rule, Stream};

/// Runs steps of a [`Network`]. Everything is reserved and planned when it is made.
pub struct Runner<N: Network> {
    network: N,
    stream: Box<dyn Stream>,
    buffer: StepBuffer,
    sampler: Sampler,
    drafts: DraftSampler,
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
            stream: device.stream()?,
            buffer: StepBuffer::new(device.as_ref(), geometry, options)?,
            sampler: Sampler::new(device.as_ref(), geometry, options, rule)?,
            drafts: DraftSampler::new(device.as_ref(), geometry, options)?,
            network,
        })
    }

    /// The model.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// The queue that steps run on.
    pub fn stream(&self) -> &dyn Stream {
        self.stream.as_ref()
    }
}

impl<N: Network> Forward for Runner<N> {
    fn geometry(&self) -> &Geometry {
        self.network.geometry()
    }

    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        let on = self.stream.as_ref();
        let batch = self.buffer.upload(lists, on)?;
        let logits = self.network.forward(&batch, on)?;
        self.sampler.sample(&logits, samples, self.drafts.laws(), on)
    }

    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        let on = self.stream.as_ref();
        let batch = self.buffer.upload_draft(lists, on)?;
        let logits = self.network.draft(&batch, on)?;
        let network = &self.network;
        let bias = |previous: &_, logits: &_| network.bias(previous, logits, on);
        self.drafts.draw(&logits, &batch, drafters, &bias, on)
    }
}
