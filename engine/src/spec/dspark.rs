//! Drafts of the model's own stages.

use crate::error::Result;
use crate::exec::{Anchor, DraftLists, Drafting, EngineOptions, Forward, Geometry, Proposer};
use crate::kv::Page;

/// Runs the draft stages on a block for each request.
pub(crate) struct Dspark {
    geometry: Geometry,
    options: EngineOptions,
    scratch: Vec<Page>,
}

impl Dspark {
    /// With window pages for [`EngineOptions::scratch_tokens`].
    pub(crate) fn new(geometry: &Geometry, options: &EngineOptions, scratch: Vec<Page>) -> Self {
        Self { geometry: geometry.clone(), options: options.clone(), scratch }
    }
}

/// The last token, and the pages before it.
fn anchor<'a>(of: &Drafting<'a>) -> Anchor<'a> {
    let id = *of.tokens.last().expect("a sequence has a prompt of at least one token");
    Anchor { id, pages: of.pages }
}

impl<F: Forward> Proposer<F> for Dspark {
    fn propose(&mut self, model: &mut F, drafting: &[Drafting<'_>]) -> Result<Vec<Vec<u32>>> {
        let anchors: Vec<_> = drafting.iter().map(anchor).collect();
        let drafters: Vec<_> = drafting.iter().map(|of| of.drafter).collect();
        let sequences = anchors.len() as u64;
        let sequences = self.options.padded_sequences(sequences).unwrap_or(sequences);
        let lists = DraftLists::new(&anchors, sequences, &self.scratch, &self.geometry);
        model.draft(&lists, &drafters)
    }

    fn scratch(&self) -> &[Page] {
        &self.scratch
    }
}
