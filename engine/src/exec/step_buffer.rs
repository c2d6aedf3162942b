//! Where the lists of steps and drafts lie on the device.

use super::staging::Staging;
use super::{
    Batch, DraftBatch, DraftLists, EngineOptions, Geometry, PictureRows, RatioLists, RowLists,
    StepLists, UpperRows,
};
use crate::error::Result;
use crate::kv::PAGE_TOKENS;
use std::sync::Arc;
use tandem_hal::{Alloc, Device, Enc, Place, Stream, View};

/// Buffers for the largest step and the largest draft, made once.
#[derive(Debug)]
pub struct StepBuffer {
    step: Staging,
    draft: Staging,
    /// Stands for the entries axis; never read.
    entries: Arc<Alloc>,
    /// Rows of all pictures in flight.
    pictures: View,
    window_tokens: u64,
    history_tokens: u64,
}

impl StepBuffer {
    /// Reserved for the largest step within `options`. `pictures` are the rows of all pictures in
    /// flight, `[cells, width]` bf16; absent for a model that reads none.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(
        device: &dyn Device,
        geometry: &Geometry,
        options: &EngineOptions,
        pictures: View,
    ) -> Result<Self> {
        let (window, history) = (geometry.window_tokens, geometry.history_tokens);
        let rows = options.step_tokens;
        let table_pages = options.table_pages(geometry);
        let columns = [1, 1, 1, 1, window, 1, 1, 2, 1, 1, 1, 1, history];
        let outputs = options.outputs(geometry);
        // The rows, the upper rows with their places, and the picture rows.
        let once = columns.map(|columns| rows * columns).into_iter().chain([outputs]);
        let lists = once.clone().chain(once).chain([rows, rows, options.sequences * table_pages]);
        let draft = options.scratch_tokens(geometry);
        let drafts = [draft, draft, draft * (window + geometry.draft_block), draft];
        Ok(Self {
            step: Staging::new(device, "step lists", lists)?,
            draft: Staging::new(device, "draft lists", drafts)?,
            pictures,
            entries: device.allocate(table_pages * PAGE_TOKENS, Place::Device, "entries axis")?,
            window_tokens: window,
            history_tokens: history,
        })
    }

    /// Uploads a step.
    ///
    /// # Errors
    /// When it is larger than was reserved for, or the device fails.
    pub fn upload(&mut self, lists: &StepLists, on: &dyn Stream) -> Result<Batch> {
        self.step.clear();
        let table = self.step.i32(&lists.table, &[lists.sequences, lists.table_pages])?;
        let mut batch = self.rows(&lists.rows, lists, &table)?;
        if let Some(upper) = &lists.upper {
            let at = self.step.i32(&upper.at, &[upper.rows.tokens()])?;
            let rows = self.rows(&upper.rows, lists, &table)?;
            batch.upper = Some(Box::new(UpperRows { at, rows }));
        }
        if !lists.cells.is_empty() {
            let at = self.step.i32(&lists.cells, &[lists.cells.len() as u64])?;
            batch.pictures = Some(PictureRows { rows: self.pictures.clone(), at });
        }
        self.step.flush(on)?;
        Ok(batch)
    }

    /// Uploads a draft.
    ///
    /// # Errors
    /// As [`StepBuffer::upload`].
    pub fn upload_draft(&mut self, lists: &DraftLists, on: &dyn Stream) -> Result<DraftBatch> {
        let (tokens, draft) = (lists.tokens(), &mut self.draft);
        draft.clear();
        let batch = DraftBatch {
            tokens,
            sequences: lists.sequences,
            id: draft.i32(&lists.id, &[tokens])?,
            position: draft.i32(&lists.position, &[tokens])?,
            window_at: draft.i32(&lists.window_at, &[tokens, self.window_tokens + lists.block])?,
            window_store: draft.i32(&lists.window_store, &[tokens])?,
        };
        draft.flush(on)?;
        Ok(batch)
    }

    fn rows(&mut self, rows: &RowLists, lists: &StepLists, table: &View) -> Result<Batch> {
        let (tokens, outputs) = (rows.tokens(), rows.output_at.len() as u64);
        let (window, history) = (self.window_tokens, self.history_tokens);
        let ratio1 = self.ratio(rows, lists, 0)?;
        let ratio2 = self.ratio(rows, lists, 1)?;
        let to = &mut self.step;
        Ok(Batch {
            tokens,
            sequences: lists.sequences,
            outputs,
            id: to.i32(&rows.id, &[tokens])?,
            position: to.i32(&rows.position, &[tokens])?,
            sequence: to.i32(&rows.sequence, &[tokens])?,
            picture: to.i32(&rows.picture, &[tokens])?,
            window_at: to.i32(&rows.window_at, &[tokens, window])?,
            window_store: to.i32(&rows.window_store, &[tokens])?,
            open_store: to.i32(&rows.open_store, &[tokens])?,
            open_members: to.i32(&rows.open_members, &[tokens, 2])?,
            table: table.clone(),
            ratio1,
            ratio2,
            history: match history {
                0 => View::absent(Enc::I32),
                _ => to.i32(&rows.history, &[tokens, history])?,
            },
            output_at: to.i32(&rows.output_at, &[outputs])?,
            pictures: None,
            upper: None,
        })
    }

    fn ratio(&mut self, rows: &RowLists, lists: &StepLists, at: usize) -> Result<RatioLists> {
        let tokens = rows.tokens();
        let entries = lists.entries(at as u64 + 1);
        Ok(RatioLists {
            visible: self.step.i32(&rows.visible[at], &[tokens])?,
            store: self.step.i32(&rows.store[at], &[tokens])?,
            entries: View::dense(&self.entries, 0, Enc::U8, &[1, entries])?,
        })
    }
}
