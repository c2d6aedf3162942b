//! The model under verification, with everything needed to run any part of it.

use std::sync::Arc;

use tandem_hal::{
    Arena, Cache, Device, Elem, Enc, Extents, Fetch, FetchIo, Lane, Place, Store, StoreIo, Stream,
    Sym, View, Want, num::bf16,
};

use crate::error::Result;
use crate::exec::{
    Batch, Chunk, DraftSource, EngineOptions, Geometry, Graphs, PictureSpan, Replay, StepBuffer,
    StepLists,
};
use crate::kv::{Checkpoint, OutOfPages, PAGE_TOKENS, PagePools, PoolPages, SequencePages};
use crate::model::v41::lanes::Lanes;
use crate::model::v41::layer::LayerScratch;
use crate::model::v41::{
    CacheFormats, Caches, Config, Limits, Model, ModelWeights, Pools, Recipe, Scratch,
};
use crate::weights::Room;

/// A planned model, its caches, and room for one prompt of a stated length.
pub struct Subject {
    device: Arc<dyn Device>,
    stream: Box<dyn Stream>,
    config: Config,
    formats: CacheFormats,
    geometry: Geometry,
    model: Model,
    caches: Caches,
    scratch: Scratch,
    lanes: Lanes,
    buffer: StepBuffer,
    pools: PagePools,
    limits: Limits,
    picture_rows: View,
}

/// A prompt laid out on the device: its pages, and the batch that runs it whole.
pub struct Laid {
    /// The step's rows.
    pub batch: Batch,
    /// Pages of the prompt; all of its positions are readable until they are committed.
    pub pages: SequencePages,
    /// The open step.
    pub step: Checkpoint,
}

impl Subject {
    /// Plans the model for prompts of up to `tokens` tokens.
    ///
    /// # Errors
    /// When the device lacks a kernel or memory.
    pub fn new(
        device: &Arc<dyn Device>,
        (config, recipe): (&Config, &Recipe),
        weights: ModelWeights,
        tokens: u64,
    ) -> Result<Subject> {
        let geometry = Geometry::of(config);
        let block = 1 + geometry.draft_block;
        let options = EngineOptions {
            // Only sizes lists: as many outputs as there are rows.
            sequences: tokens.div_ceil(block),
            step_tokens: tokens.div_ceil(block) * block,
            chunk_tokens: tokens,
            step_us: None,
            resume_points: 0,
            replay: Replay::Exact,
            pages: tokens.div_ceil(PAGE_TOKENS),
            context_tokens: tokens,
            draft_tokens: geometry.draft_block,
            drafts: DraftSource::Dspark,
            least_survival: 0.0,
            skip_upper_half: false,
            step_sizes: vec![],
            pictures: 1,
            graphs: Graphs::Full,
            biases: 0,
            seed: 0,
        };
        let (window, block) = (geometry.window_tokens, geometry.draft_block);
        let pages = PoolPages::for_steps(options.pages, 1, window, tokens, block);
        let pools =
            Pools { pages: pages.compressed, window_pages: pages.window, open_pages: pages.open };
        let limits = Limits {
            tokens,
            outputs: tokens,
            sequences: 1,
            table_pages: options.pages.next_power_of_two(),
            pools,
            cells: tokens,
            score_budget_bytes: 64 << 20,
        };
        let model = Model::plan(device.as_ref(), config, recipe, limits, weights)?;
        // A prompt has at least as many tokens as its pictures have rows.
        let shape = [tokens, config.hidden_size as u64];
        let picture_rows =
            Room::reserve(device.as_ref(), "verify.picture", |room| room.view(Enc::BF16, &shape))?;
        let formats = recipe.formats;
        Ok(Subject {
            stream: device.stream()?,
            caches: Caches::with_formats(device.as_ref(), config, &formats, &pools)?,
            scratch: model.scratch(device.as_ref())?,
            lanes: model.lanes(device.as_ref())?,
            buffer: StepBuffer::new(device.as_ref(), &geometry, &options, picture_rows.clone())?,
            picture_rows,
            pools: PagePools::new(pages),
            device: device.clone(),
            config: config.clone(),
            formats,
            geometry,
            model,
            limits,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// The planned model.
    pub fn model(&self) -> &Model {
        &self.model
    }
    /// Its caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }
    /// Its buffers.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }
    /// Its sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// Records of its caches.
    pub fn formats(&self) -> &CacheFormats {
        &self.formats
    }
    /// `[tokens, hidden]` bf16, where the rows of a prompt's pictures belong.
    pub fn picture_rows(&self) -> &View {
        &self.picture_rows
    }
    /// The page pools.
    pub fn pools(&self) -> &PagePools {
        &self.pools
    }
    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
    /// The queue everything runs on.
    pub fn stream(&self) -> &dyn Stream {
        self.stream.as_ref()
    }
    /// Where launches go.
    pub fn lane(&self) -> Lane<'_> {
        self.lanes.lane(self.stream.as_ref())
    }
    /// Where step lists are uploaded through.
    pub fn buffer(&mut self) -> (&mut StepBuffer, &dyn Stream) {
        (&mut self.buffer, self.stream.as_ref())
    }

    /// Lay a prompt out as one step whose logits are all wanted.
    ///
    /// # Errors
    /// When it is longer than was planned for.
    pub fn lay(&mut self, ids: &[u32], pictures: &[PictureSpan]) -> Result<Laid> {
        let tokens = ids.len() as u64;
        let mut pages = SequencePages::new(&self.pools, self.geometry.window_tokens);
        let step = pages.begin(tokens).map_err(|short: OutOfPages| {
            crate::Error::argument("prompt", format!("{tokens} tokens: {short}"))
        })?;
        let chunk = Chunk {
            pages: &pages,
            known: ids,
            drafts: &[],
            start: 0,
            end: tokens,
            upper_from: 0,
            pictures,
            window_tokens: self.geometry.window_tokens,
            history_tokens: self.geometry.history_tokens,
        };
        let mut lists = StepLists::new(&[chunk]);
        lists.want((0..tokens as i32).collect());
        let batch = self.buffer.upload(&lists, self.stream.as_ref())?;
        Ok(Laid { batch, pages, step })
    }

    /// The layers' buffers for a laid prompt.
    ///
    /// # Errors
    /// When it is longer than was planned for.
    pub fn layers(&self, laid: &Laid) -> Result<LayerScratch> {
        self.scratch.layers.rows(laid.batch.tokens)
    }

    /// The vectors of cache entries, `[at.len(), width]`.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn fetch(&self, cache: &Cache, view: &View, at: &[i32]) -> Result<Vec<f32>> {
        if at.is_empty() {
            return Ok(vec![]);
        }
        let count = at.len() as u64;
        let plan = self.device.plan(
            Fetch { cache: cache.clone(), y: Elem::F32 },
            &Want::row_invariant(self.cache_limits(count)),
        )?;
        let shape = [count, cache.width()];
        let bytes =
            View::reserved_bytes(Enc::I32, &[count]) + View::reserved_bytes(Enc::F32, &shape);
        let mut arena = Arena::new(self.device.as_ref(), bytes, "verify.fetch")?;
        let (list, y) = (arena.view(Enc::I32, &[count])?, arena.view(Enc::F32, &shape)?);
        let scratch = self.workspace_for(plan.workspace_bytes())?;
        self.stream.write(&list, &int_bytes(at))?;
        plan.launch(self.stream(), &scratch, FetchIo { cache: view, at: &list, y: &y })?;
        self.reals(&y)
    }

    /// Put vectors into cache entries.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn store(&self, cache: &Cache, view: &View, at: &[i32], values: &[f32]) -> Result<()> {
        if at.is_empty() {
            return Ok(());
        }
        let count = at.len() as u64;
        let plan = self.device.plan(
            Store { cache: cache.clone(), x: Elem::Bf16 },
            &Want::row_invariant(self.cache_limits(count)),
        )?;
        let shape = [count, cache.width()];
        let bytes =
            View::reserved_bytes(Enc::I32, &[count]) + View::reserved_bytes(Enc::BF16, &shape);
        let mut arena = Arena::new(self.device.as_ref(), bytes, "verify.store")?;
        let (list, x) = (arena.view(Enc::I32, &[count])?, arena.view(Enc::BF16, &shape)?);
        let scratch = self.workspace_for(plan.workspace_bytes())?;
        self.stream.write(&list, &int_bytes(at))?;
        self.stream.write(&x, &bf16_bytes(values))?;
        Ok(plan.launch(self.stream(), &scratch, StoreIo { x: &x, at: &list, cache: view })?)
    }

    fn cache_limits(&self, tokens: u64) -> Extents {
        Extents::of(&[
            (Sym::Tokens, tokens),
            (Sym::Pages, self.limits.pools.pages),
            (Sym::WindowPages, self.limits.pools.window_pages),
            (Sym::OpenPages, self.limits.pools.open_pages),
        ])
    }

    fn workspace_for(&self, bytes: u64) -> Result<View> {
        let alloc = self.device.allocate(bytes, Place::Device, "verify.workspace")?;
        Ok(View::dense(&alloc, 0, Enc::U8, &[bytes])?)
    }

    /// A dense f32 or bf16 view on the host.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn reals(&self, view: &View) -> Result<Vec<f32>> {
        let bytes = self.stream.read(view)?;
        Ok(match view.enc() {
            Enc::BF16 => {
                let halves = bytes.as_chunks::<2>().0.iter();
                halves.map(|b| bf16::to_f32(u16::from_le_bytes(*b))).collect()
            }
            _ => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        })
    }

    /// A dense i32 view on the host.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn integers(&self, view: &View) -> Result<Vec<i32>> {
        let bytes = self.stream.read(view)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect())
    }
}

/// Integers as a device reads them.
pub fn int_bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Numbers that are bf16 values, as a device reads them.
pub fn bf16_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect()
}

/// Numbers as a device reads them.
pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
