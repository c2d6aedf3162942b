//! A model with everything it needs to run steps: caches, buffers, scratch.

use std::ops::Range;

use tandem_hal::{Device, Enc, Stream, View};

use super::caches::{Caches, Pools};
use super::config::Config;
use super::lanes::Lanes;
use super::model::{Limits, Model, Scratch};
use super::recipe::Recipe;
use super::vision_tower::{Tower, TowerWeights};
use super::weights::ModelWeights;
use crate::error::{Error, Result};
use crate::exec::{Batch, DraftBatch, Drafted, EngineOptions, Geometry, Network};
use crate::kv::PageKind;
use crate::vision::PictureInput;
use crate::weights::Room;

/// A planned model and its memory on one device.
pub struct Resident {
    model: Model,
    caches: Caches,
    scratch: Scratch,
    lanes: Lanes,
    geometry: Geometry,
    eye: Option<Eye>,
}

/// What reads pictures.
struct Eye {
    tower: Tower,
    /// `[cells, hidden]` bf16, the rows of all pictures in flight.
    rows: View,
}

impl Resident {
    /// For steps within `options`, of text until [`Resident::with_pictures`]; no piece of the index scores takes more than
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
            cells: options.picture_rows(&geometry).max(1),
            score_budget_bytes,
        };
        let model = Model::plan(device, config, &Recipe::of(config), limits, weights)?;
        geometry.pictures = None;
        Ok(Self {
            eye: None,
            caches: Caches::new(device, config, &pools)?,
            scratch: model.scratch(device)?,
            lanes: model.lanes(device)?,
            model,
            geometry,
        })
    }

    /// The same with a tower and room for the rows of [`EngineOptions::pictures`] pictures.
    ///
    /// # Errors
    /// [`Error::Argument`] for a model without a tower or without room for one picture, as
    /// [`Tower::plan`], and [`Error::Device`] when memory runs out.
    pub fn with_pictures(
        self,
        device: &dyn Device,
        config: &Config,
        weights: TowerWeights,
        options: &EngineOptions,
    ) -> Result<Self> {
        let geometry = Geometry { pictures: Geometry::of(config).pictures, ..self.geometry };
        if options.picture_rows(&geometry) == 0 {
            let problem = "a tower without room for a picture; allow at least one, or leave it out";
            return Err(Error::argument("pictures", problem.to_owned()));
        }
        let tower = Tower::plan(device, config, weights)?;
        let shape = [options.picture_rows(&geometry), config.hidden_size as u64];
        let rows = Room::reserve(device, "picture rows", |room| room.view(Enc::BF16, &shape))?;
        Ok(Self { geometry, eye: Some(Eye { tower, rows }), ..self })
    }

    /// The planned model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }
}

impl Network for Resident {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Besides, every row leaves its context entries for the draft. Those of rejected rows lie past
    /// the sequence's end, like their window entries, until later rows replace them.
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View> {
        let lane = self.lanes.lane(on);
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

    fn hidden(
        &self,
        batch: &Batch,
        on: &dyn Stream,
        take: &mut dyn FnMut(&View) -> Result<()>,
    ) -> Result<()> {
        self.model.hidden(self.lanes.lane(on), batch, (&self.caches, &self.scratch), take)
    }

    fn picture_rows(&self) -> View {
        self.eye.as_ref().map_or_else(|| View::absent(Enc::BF16), |eye| eye.rows.clone())
    }

    fn caches(&self, kind: PageKind) -> Vec<View> {
        self.caches.of_kind(kind)
    }

    fn picture(&self, input: &PictureInput, first_row: u64, on: &dyn Stream) -> Result<()> {
        let missing = || Error::Internal { invariant: "only models with a tower see".into() };
        let Eye { tower, rows } = self.eye.as_ref().ok_or_else(missing)?;
        let patches = &input.patches;
        let rows = rows.rows(first_row..first_row + input.span.tokens())?;
        let grid = (patches.patch_rows(), patches.patch_columns());
        tower.forward(on, (&patches.to_bytes(), grid), &rows)
    }

    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<Drafted> {
        let (drafter, scratch) = self.drafter()?;
        drafter.forward(self.lanes.lane(on), batch, &self.caches, scratch)
    }

    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()> {
        let (drafter, _) = self.drafter()?;
        drafter.bias(self.lanes.lane(on), previous, logits)
    }

    fn confidence(
        &self,
        drafted: &Drafted,
        rows: Range<u64>,
        (previous, y): (&View, &View),
        on: &dyn Stream,
    ) -> Result<()> {
        let (drafter, _) = self.drafter()?;
        drafter.confidence(self.lanes.lane(on), &drafted.hidden.rows(rows)?, previous, y)
    }
}

impl Resident {
    fn drafter(&self) -> Result<(&super::dspark::Drafter, &super::dspark::DraftScratch)> {
        let both = self.model.drafter().zip(self.scratch.draft.as_ref());
        let missing = || Error::Internal { invariant: "only models with stages draft".into() };
        both.ok_or_else(missing)
    }
}
