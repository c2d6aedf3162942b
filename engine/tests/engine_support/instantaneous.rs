//! An engine of many requests over a model that takes no time.

use crate::engine_support::{geometry, options, prompt, request};
use tandem_engine::Result;
use tandem_engine::exec::{
    ClientId, DraftLists, Drafter, Engine, EngineOptions, Event, Forward, Geometry, Request,
    Sample, Sampled, StepLists, What,
};

/// Answers at once, without looking.
pub struct Instantaneous(Geometry);

impl Forward for Instantaneous {
    fn geometry(&self) -> &Geometry {
        &self.0
    }
    fn step(&mut self, _: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        let sampled = |sample: &Sample<'_>| Sampled {
            accepted: sample.drafts.len() as u64,
            token: Some(7),
            log_probs: vec![],
        };
        Ok(samples.iter().map(sampled).collect())
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        Ok(drafters.iter().map(|_| vec![7; lists.block as usize]).collect())
    }
}

/// Of `running` requests that decode, while others wait. Request `n` begins with a prompt of
/// `prompt_tokens(n)`; a step has `rows` rows for each.
pub fn decoding(
    running: u64,
    rows: u64,
    prompt_tokens: impl Fn(u64) -> u64,
) -> Engine<Instantaneous> {
    let options = EngineOptions {
        sequences: running,
        step_tokens: running * rows,
        chunk_tokens: running * rows,
        pages: running * 9,
        draft_tokens: 0,
        ..options()
    };
    let mut engine = Engine::new(Instantaneous(geometry()), options).unwrap();
    for n in 0..running + 100 {
        let client = ClientId(n % 7);
        engine.add(Request { client, ..request(prompt(n, prompt_tokens(n)), 330) }).unwrap();
    }
    let is_token = |event: &Event| matches!(event.what, What::Token { .. });
    while engine.step().unwrap().into_iter().filter(is_token).count() as u64 != running {}
    engine
}
