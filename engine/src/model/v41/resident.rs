//! A model with everything it needs to run steps: caches, buffers, scratch.

use tandem_hal::{Device, Lane, Stream, View};

use super::caches::{Caches, Pools};
use super::config::Config;
use super::model::{Limits, Model, Scratch};
use super::recipe::Recipe;
use super::weights::ModelWeights;
use crate::error::{Error, Result};
use crate::exec::{Batch, DraftBatch, EngineOptions, Geometry, Network};

/// A planned model and its memory on one device.
pub struct Resident {
    model: Model,
    caches: Caches,
    scratch: Scratch,
    workspace: View,
    geometry: Geometry,
}

impl Resident {
    /// For steps within `options`; no piece of the index scores takes more than
    /// `score_budget_bytes`.
    ///
    /// # Errors
    /// As [`Model::plan`], and [`Error::Device`] when memory runs out.
    pub fn new(
        device: &dyn Device,
        config: &Config,
        weights: ModelWeights,
        options: &EngineOptions,
        score_budget_bytes: u64,
    ) -> Result<Self> {
        let mut geometry = Geometry::of(config);
        if weights.dspark.is_none() {
            geometry.draft_block = 0;
        }
        options.check(&geometry)?;
        let pages = options.pool_pages(&geometry);
        let pools =
            Pools { pages: pages.compressed, window_pages: pages.window, open_pages: pages.open };
        let limits = Limits {
            tokens: options.step_tokens,
            outputs: options.outputs(&geometry),
            sequences: options.sequences,
            table_pages: options.table_pages(&geometry),
            pools,
            cells: options.capacity_tokens(&geometry),
            score_budget_bytes,
        };
        let model = Model::plan(device, config, &Recipe::of(config), limits, weights)?;
        Ok(Self {
            caches: Caches::new(device, config, &pools)?,
            scratch: model.scratch(device)?,
            workspace: model.workspace(device)?,
            model,
            geometry,
        })
    }

    /// The planned model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    fn lane<'a>(&'a self, stream: &'a dyn Stream) -> Lane<'a> {
        Lane { stream, workspace: &self.workspace }
    }
}

impl Network for Resident {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Besides, every row leaves its context entries for the draft. Those of rejected rows lie past
    /// the sequence's end, like their window entries, until later rows replace them.
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View> {
        let lane = self.lane(on);
        let outcome = self.model.forward(lane, batch, &self.caches, &self.scratch)?;
        let rows = batch.upper.as_ref().map_or(batch, |upper| &upper.rows);
        let drafter = self.model.drafter().zip(self.scratch.draft.as_ref());
        if let (Some((drafter, scratch)), Some(features)) = (drafter, &outcome.features)
            && rows.tokens > 0
        {
            let at = (&rows.position, &rows.window_store);
            drafter.context(lane, features, at, &self.caches, scratch)?;
        }
        Ok(outcome.logits)
    }

    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<View> {
        let (drafter, scratch) = self.drafter()?;
        Ok(drafter.forward(self.lane(on), batch, &self.caches, scratch)?.logits)
    }

    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()> {
        let (drafter, _) = self.drafter()?;
        drafter.bias(self.lane(on), previous, logits)
    }
}

impl Resident {
    fn drafter(&self) -> Result<(&super::dspark::Drafter, &super::dspark::DraftScratch)> {
        let both = self.model.drafter().zip(self.scratch.draft.as_ref());
        let missing = || Error::Internal { invariant: "only models with stages draft".into() };
        both.ok_or_else(missing)
    }
}
