//! Many texts through one model.

use super::pool::Pool;
use crate::error::{Error, Result};
use crate::exec::{Chunk, Engine, EngineOptions, Forward, Geometry, StepLists};
use crate::kv::{PAGE_TOKENS, PagePools, SequencePages};
use std::collections::VecDeque;

/// A text's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// Which of the texts, by the order they were added in.
    pub index: u64,
    /// Its tokens.
    pub tokens: u64,
    /// `[width]`, of unit length; `None` when the model's states were no numbers.
    pub vector: Option<Vec<f32>>,
}

/// Embeds texts, several at once, in the order they come.
pub struct Embedder<F: Forward> {
    model: F,
    geometry: Geometry,
    options: EngineOptions,
    pools: PagePools,
    lists: StepLists,
    added: u64,
    waiting: VecDeque<Text>,
    /// Oldest first.
    running: Vec<Text>,
}

/// A text on its way.
struct Text {
    index: u64,
    ids: Vec<u32>,
    pages: SequencePages,
    pool: Pool,
}

impl<F: Forward> Embedder<F> {
    /// Of an engine that is ready; its limits hold.
    pub fn new(engine: Engine<F>) -> Self {
        let (model, options) = engine.into_model();
        let geometry = model.geometry().clone();
        let pools = PagePools::new(options.pool_pages(&geometry));
        let lists = StepLists::default();
        let (waiting, running) = (VecDeque::new(), Vec::new());
        Self { model, geometry, options, pools, lists, added: 0, waiting, running }
    }

    /// Adds a text.
    ///
    /// # Errors
    /// [`Error::Argument`] for one without tokens, with more than there is room for, or with ids outside
    /// the vocabulary; it is then not added.
    pub fn add(&mut self, ids: Vec<u32>) -> Result<()> {
        let refuse = |problem: String| Err(Error::argument("text", problem));
        let capacity = self.options.capacity_tokens(&self.geometry);
        if ids.is_empty() {
            return refuse("it has no tokens; give at least one".into());
        }
        if ids.len() as u64 > capacity {
            let tokens = ids.len();
            return refuse(format!(
                "{tokens} tokens, but the cache holds {capacity}; shorten it or allow longer \
                 sequences"
            ));
        }
        if let Some(id) = ids.iter().find(|id| u64::from(**id) >= self.geometry.vocab) {
            let vocab = self.geometry.vocab;
            return refuse(format!("id {id} is outside the vocabulary of {vocab}"));
        }
        let pages = SequencePages::new(&self.pools, self.geometry.window_tokens);
        self.waiting.push_back(Text { index: self.added, ids, pages, pool: Pool::default() });
        self.added += 1;
        Ok(())
    }

    /// Texts that are not done.
    pub fn pending(&self) -> u64 {
        (self.waiting.len() + self.running.len()) as u64
    }

    /// Runs one step; the texts that it completes.
    ///
    /// # Errors
    /// When the device fails.
    pub fn step(&mut self) -> Result<Vec<Embedded>> {
        self.admit();
        let mut left = self.options.step_tokens;
        let mut begun = Vec::new();
        for text in &mut self.running {
            let rows = text.due_tokens().min(self.options.chunk_tokens).min(left);
            let out_of_pages = |short| Error::Internal { invariant: format!("{short}") };
            begun.push((rows, text.pages.begin(rows).map_err(out_of_pages)?));
            left -= rows;
        }
        let Self { running, geometry, lists, .. } = self;
        let chunks = running.iter().zip(&begun).filter(|(_, (rows, _))| *rows > 0);
        lists.fill(chunks.map(|(text, (rows, _))| text.chunk(*rows, geometry)));
        lists.want(Vec::new());
        let states = match lists.rows.tokens() {
            0 => Vec::new(),
            _ => self.model.hidden(lists)?,
        };
        let width = states.len() / lists.rows.tokens().max(1) as usize;
        let mut states = states.chunks(width.max(1));
        for (text, (rows, step)) in self.running.iter_mut().zip(begun) {
            states.by_ref().take(rows as usize).for_each(|state| text.pool.add(state));
            text.pages.commit(step, rows);
        }
        let done = self.running.extract_if(.., |text| text.due_tokens() == 0);
        Ok(done.map(Text::embedded).collect())
    }

    /// Starts waiting texts, in order, while there is a place and pages for all their tokens beside
    /// what those that run still need.
    fn admit(&mut self) {
        let mut promised: u64 = self.running.iter().map(Text::missing_pages).sum();
        while (self.running.len() as u64) < self.options.sequences {
            let Some(next) = self.waiting.front() else { return };
            promised += next.missing_pages();
            if promised > self.pools.compressed.free_pages() {
                return;
            }
            self.running.extend(self.waiting.pop_front());
        }
    }
}

impl Text {
    fn due_tokens(&self) -> u64 {
        self.ids.len() as u64 - self.pages.tokens()
    }

    fn missing_pages(&self) -> u64 {
        let pages = (self.ids.len() as u64).div_ceil(PAGE_TOKENS);
        pages - self.pages.table().len() as u64
    }

    fn chunk(&self, rows: u64, geometry: &Geometry) -> Chunk<'_> {
        let start = self.pages.tokens();
        Chunk {
            pages: &self.pages,
            known: &self.ids,
            drafts: &[],
            start,
            end: start + rows,
            upper_from: 0,
            pictures: &[],
            window_tokens: geometry.window_tokens,
            history_tokens: geometry.history_tokens,
        }
    }

    fn embedded(self) -> Embedded {
        let (index, tokens) = (self.index, self.ids.len() as u64);
        Embedded { index, tokens, vector: self.pool.unit() }
    }
}
