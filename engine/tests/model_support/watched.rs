//! A runner whose drafts are remembered.

use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Forward, Geometry, Runner, Sample, Sampled, StepLists,
};
use tandem_engine::kv::PageMemory;
use tandem_engine::model::v41::Resident;

/// Keeps the blocks that are drafted.
pub struct Watched {
    pub runner: Runner<Resident>,
    pub blocks: Vec<Vec<u32>>,
}

impl Watched {
    pub fn new(runner: Runner<Resident>) -> Self {
        Self { runner, blocks: Vec::new() }
    }
}

impl Forward for Watched {
    fn geometry(&self) -> &Geometry {
        self.runner.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        self.runner.step(lists, samples)
    }
    fn page_memory(&mut self) -> Option<&mut dyn PageMemory> {
        self.runner.page_memory()
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        let blocks = self.runner.draft(lists, drafters)?;
        self.blocks.extend(blocks.clone());
        Ok(blocks)
    }
}
