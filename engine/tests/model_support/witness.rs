//! A runner whose every logit is remembered.

use std::collections::HashMap;

use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Forward, Geometry, Runner, Sample, Sampled, StepLists,
};
use tandem_hal::{Enc, View};

use super::demo::Recorder;

/// The bytes of the logits after each text.
pub type Logits = HashMap<Vec<u32>, Vec<u8>>;

/// Keeps the logits of every token that counted.
pub struct Witness {
    pub runner: Runner<Recorder>,
    pub logits: Logits,
    /// Whether what a step computes anew is spoilt before it.
    pub poisons: bool,
}

impl Witness {
    pub fn new(runner: Runner<Recorder>) -> Self {
        Self { runner, logits: Logits::new(), poisons: false }
    }

    /// The first rows of the logits that the last step left.
    fn read(&self, outputs: u64) -> Vec<Vec<u8>> {
        let last = self.runner.network().last();
        let shape = [outputs, self.geometry().vocab];
        let rows = View::dense(last.alloc(), last.offset(), Enc::F32, &shape).unwrap();
        let bytes = self.runner.stream().read(&rows).unwrap();
        bytes.chunks(shape[1] as usize * 4).map(<[u8]>::to_vec).collect()
    }
}

impl Forward for Witness {
    fn geometry(&self) -> &Geometry {
        self.runner.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        if self.poisons {
            self.runner.network().poison(self.runner.stream());
        }
        let sampled = self.runner.step(lists, samples)?;
        if samples.is_empty() {
            return Ok(sampled);
        }
        let mut rows = self.read(lists.rows.output_at.len() as u64).into_iter();
        for (sample, sampled) in samples.iter().zip(&sampled) {
            let mut text = [sample.prompt, sample.generated].concat();
            let outputs =
                if sample.drafts.is_empty() { 1 } else { self.geometry().draft_block + 1 };
            let rows: Vec<_> = rows.by_ref().take(outputs as usize).collect();
            for (at, row) in rows.into_iter().enumerate().take(sampled.accepted as usize + 1) {
                assert_eq!(text.len() as u64, sample.position + at as u64);
                self.logits.insert(text.clone(), row);
                text.extend(sample.drafts.get(at));
            }
        }
        Ok(sampled)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.runner.draft(lists, drafters)
    }
}
