//! Masks, for the requests whose answers are held to a form.

use crate::error::Result;
use crate::exec::{EngineOptions, Geometry, Sample, Staging};
use tandem_hal::{Device, Extents, Lane, MaskLogits, MaskLogitsIo, Plan, Sym, View, Want};

/// Runs over the rows of one request at a time, so that the others have no masks.
pub(crate) struct Masker {
    plan: Plan<MaskLogits>,
    words: u64,
    staging: Staging,
}

impl Masker {
    pub(crate) fn new(
        device: &dyn Device,
        geometry: &Geometry,
        options: &EngineOptions,
    ) -> Result<Self> {
        let (rows, vocab) = (1 + options.block(geometry), geometry.vocab);
        let words = vocab.div_ceil(32);
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, rows)]));
        Ok(Self {
            plan: device.plan(MaskLogits { vocab }, &want)?,
            words,
            staging: Staging::new(device, "masks", [rows * words])?,
        })
    }

    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.plan.workspace_bytes()
    }

    /// Takes from the rows of a sample, from `first` on, what its masks do not allow.
    pub(crate) fn run(
        &mut self,
        logits: &View,
        first: u64,
        sample: &Sample<'_>,
        lane: Lane<'_>,
    ) -> Result<()> {
        let rows = 1 + sample.drafts.len() as u64;
        self.staging.clear();
        let allowed = self.staging.u32(sample.masks, &[rows, self.words])?;
        self.staging.flush(lane.stream)?;
        let logits = logits.rows(first..first + rows)?;
        Ok(lane.run(&self.plan, MaskLogitsIo { allowed: &allowed, logits: &logits })?)
    }
}
