//! Rejected drafts of the demo model, through the whole engine: the draft stages write their block,
//! the backbone verifies it, the scheduler rolls back, and nothing of it is left.

mod engine_support;
mod model_support;

use engine_support::options;
use model_support::live::{CacheBytes, Live};
use model_support::{demo, demo_config};
use std::collections::HashSet;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Engine, EngineOptions, Forward, Geometry, Request, RequestId, Runner,
    Sample, Sampled, StepLists, What,
};
use tandem_engine::model::v41::Resident;
use tandem_engine::sample::{Draws, SamplingParameters};
use tandem_hal::{Device, Rule};
use tandem_reference::{RefDevice, Setup};

const WINDOW: u64 = 128;
const BLOCK: u64 = 5;
/// The longest walk, and what its last step needs.
const TEXT: u64 = WINDOW * BLOCK + 12;

/// Drafts with the stages, then replaces what they said: the text as far as the request's seed
/// says, and something else after it.
struct Forced {
    runner: Runner<Resident>,
    text: Vec<u32>,
}

impl Forward for Forced {
    fn geometry(&self) -> &Geometry {
        self.runner.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        self.runner.step(lists, samples)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.runner.draft(lists, drafters)?;
        let vocab = self.geometry().vocab as u32;
        let block = |drafter: &Drafter| {
            let right = (0..=BLOCK).find(|right| drafter.draws == Draws::new(*right)).unwrap();
            let next = drafter.position as usize;
            let text = self.text[next..next + BLOCK as usize].iter().zip(0..);
            text.map(|(id, at)| if at < right { *id } else { (*id + 1) % vocab }).collect()
        };
        Ok(drafters.iter().map(block).collect())
    }
}

impl Forced {
    fn caches(&self) -> CacheBytes {
        CacheBytes::read(self.runner.network(), self.runner.stream())
    }
}

fn engine(text: &[u32], sequences: u64, pages: u64) -> Engine<Forced> {
    let device: Arc<dyn Device> =
        Arc::new(RefDevice::with(&Setup { threads: Some(2), ..Setup::default() }));
    let options = EngineOptions {
        sequences,
        step_tokens: sequences * (BLOCK + 1),
        pages,
        context_tokens: 1024,
        ..options()
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    Engine::new(Forced { runner, text: text.to_vec() }, options).unwrap()
}

/// A greedy text from its first token, token by token without drafts, and the bytes of all entries
/// it ever had: entries never change once they count.
fn plain() -> (Vec<u32>, Live) {
    let mut engine = engine(&[], 1, TEXT / 64 + 2);
    let (mut text, mut bytes) = (vec![0], Live::new());
    let max_tokens = Some(TEXT + 1);
    let request = Request { prompt: text.clone(), max_tokens, ..Request::default() };
    let id = engine.add(request).unwrap();
    while (text.len() as u64) < TEXT {
        for event in engine.step().unwrap() {
            match event.what {
                What::Started { .. } => {}
                What::Token { id, .. } => text.push(id),
                What::Finished { .. } => panic!("it goes on"),
            }
        }
        let snapshot = engine.pages(id).unwrap().snapshot();
        bytes.extend(engine.model().caches().live(&snapshot));
    }
    assert_eq!(engine.work().drafts, 0);
    let config = demo_config();
    let last_stage = config.layers + config.dspark.unwrap().stages - 1;
    assert!(bytes.contains_key(&(format!("window {last_stage}"), 0)), "draft stages count");
    (text, bytes)
}

/// One request whose drafts are right up to `right`, and where its steps have started.
struct Walk {
    id: RequestId,
    right: u64,
    steps: u64,
    from: Vec<u64>,
}

/// Walks of equal strides that together start a step at every position of a window.
fn walks(engine: &mut Engine<Forced>, text: &[u32]) -> Vec<Walk> {
    let mut walks = Vec::new();
    for (right, starts) in [(0, 1), (1, 2), (2, 1), (3, 4), (4, 1), (5, 2)] {
        for start in 1..=starts {
            let request = Request {
                prompt: text[..start].to_vec(),
                sampling: SamplingParameters { seed: Some(right), ..Default::default() },
                drafts: true,
                ..Request::default()
            };
            let id = engine.add(request).unwrap();
            walks.push(Walk { id, right, steps: WINDOW / starts as u64, from: Vec::new() });
        }
    }
    walks
}

/// After every number of accepted drafts at every position of a window, live bytes are those of a
/// run that never drafted.
#[test]
fn rejected_drafts_leave_every_live_byte_as_without_drafts() {
    let (text, plain) = plain();
    let mut engine = engine(&text, 11, 11 * (TEXT / 64 + 1));
    let mut walks = walks(&mut engine, &text);
    // The prompts; drafts come from the next step on.
    engine.step().unwrap();
    let length = |engine: &Engine<Forced>, id| engine.pages(id).unwrap().tokens();
    while !engine.is_idle() {
        let running = walks.iter_mut().filter(|walk| (walk.from.len() as u64) < walk.steps);
        let mut running: Vec<_> = running.map(|walk| (length(&engine, walk.id), walk)).collect();
        engine.step().unwrap();
        let caches = engine.model().caches();
        for (from, walk) in &mut running {
            walk.from.push(*from);
            let pages = engine.pages(walk.id).unwrap();
            assert_eq!(pages.tokens(), *from + walk.right + 1, "{} right of {BLOCK}", walk.right);
            for (name, bytes) in caches.live(&pages.snapshot()) {
                let expected = plain.get(&name);
                assert!(expected == Some(&bytes), "{name:?}, {} right from {from}", walk.right);
            }
        }
        for (_, walk) in running {
            if walk.from.len() as u64 == walk.steps {
                assert!(engine.cancel(walk.id));
            }
        }
        engine.check().unwrap();
    }
    for right in 0..=BLOCK {
        let steps = walks.iter().filter(|walk| walk.right == right).flat_map(|walk| &walk.from);
        let places: HashSet<_> = steps.map(|from| from % WINDOW).collect();
        assert_eq!(places.len() as u64, WINDOW, "{right} right at every position");
    }
}
