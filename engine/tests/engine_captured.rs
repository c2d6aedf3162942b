//! The demo model gives the same logits and tokens, to the bit, however its engine runs: launch by
//! launch or through captured graphs, with weights in any layout, in any chunks, and, as far as the
//! tokens agree, with drafts and without.

mod engine_support;
mod model_support;

use engine_support::{Answer, answers, prompt};
use model_support::demo::{self, Recorder};
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Engine, EngineOptions, Forward, Geometry, Request, Runner, Sample,
    Sampled, StepLists,
};
use tandem_engine::sample::SamplingParameters;
use tandem_hal::{Device, Enc, Rule, View};
use tandem_reference::{RefDevice, Setup, Weights};

/// The bytes of the logits after each text.
type Logits = HashMap<Vec<u32>, Vec<u8>>;

/// Keeps the logits of every token that counted.
struct Witness {
    runner: Runner<Recorder>,
    logits: Logits,
}

impl Witness {
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

/// How an engine runs.
#[derive(Debug, Clone, Copy)]
struct How {
    weights: Weights,
    captured: bool,
    draft_tokens: u64,
    chunk_tokens: u64,
}

/// What came of it.
struct Outcome {
    answers: Vec<Answer>,
    logits: Logits,
    replays: u64,
}

fn run(how: How) -> Outcome {
    let setup = Setup { weights: how.weights, ..Setup::default() };
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(&setup));
    let options = EngineOptions {
        sequences: 4,
        step_tokens: 64,
        chunk_tokens: how.chunk_tokens,
        pages: 32,
        context_tokens: 1024,
        draft_tokens: how.draft_tokens,
        step_sizes: vec![2, 3],
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let mut runner = Runner::new(&device, Recorder::new(resident), &options, Rule::Block).unwrap();
    let reserved = device.ledger().len();
    if how.captured {
        runner.capture(&options).unwrap();
    }
    let witness = Witness { runner, logits: Logits::new() };
    let mut engine = Engine::new(witness, options).unwrap();
    let answers = answers(&mut engine, requests());
    assert_eq!(device.ledger().len(), reserved, "something was reserved after the start");
    let Witness { runner, logits } = engine.model();
    Outcome { answers, logits: logits.clone(), replays: runner.replays() }
}

/// Four at first, so that no size is large enough; later three, two and one. The last is sampled.
fn requests() -> Vec<Request> {
    let request = |(at, (prompt_tokens, max_tokens)): (u64, (u64, u64))| Request {
        max_tokens: Some(max_tokens),
        sampling: SamplingParameters {
            temperature: if at == 3 { 0.9 } else { 0.0 },
            seed: Some(at),
            ..Default::default()
        },
        ..engine_support::request(prompt(at, prompt_tokens), max_tokens)
    };
    (0..).zip([(5, 16), (70, 4), (130, 8), (23, 12)]).map(request).collect()
}

fn compare(how: How, plain: &Outcome) {
    let outcome = run(how);
    println!("{how:?}: {} replays", outcome.replays);
    assert_eq!(outcome.replays > 0, how.captured, "{how:?}");
    for (at, (got, expected)) in outcome.answers.iter().zip(&plain.answers).enumerate() {
        assert_eq!(got.tokens, expected.tokens, "{how:?}, request {at}");
    }
    assert_eq!(outcome.logits.len(), plain.logits.len(), "{how:?}");
    assert!(outcome.logits == plain.logits, "{how:?}: logits differ");
}

#[test]
fn captured_or_not_in_any_layout_and_any_chunks() {
    let mut plain = vec![];
    for draft_tokens in [0, 5] {
        let how = How { weights: Weights::Plain, captured: false, draft_tokens, chunk_tokens: 64 };
        let outcome = run(how);
        for (weights, captured, chunk_tokens) in [
            (Weights::Plain, true, 64),
            (Weights::Expanded, false, 11),
            (Weights::Expanded, true, 1),
            (Weights::Scrambled, false, 30),
            (Weights::Scrambled, true, 64),
        ] {
            compare(How { weights, captured, draft_tokens, chunk_tokens }, &outcome);
        }
        plain.push(outcome);
    }
    let [without, with] = &plain[..] else { panic!("two runs") };
    let mut common = 0;
    for (text, logits) in &without.logits {
        if let Some(other) = with.logits.get(text) {
            assert!(logits == other, "logits after {} tokens differ", text.len());
            common += 1;
        }
    }
    // Greedy requests say the same with drafts; the sampled one starts the same.
    for (one, other) in without.answers.iter().zip(&with.answers).take(3) {
        assert_eq!(one.tokens, other.tokens);
    }
    assert!(common > 16 + 4 + 8, "{common}");
    let accepted: u64 = with.answers.iter().map(|answer| answer.usage.accepted_tokens).sum();
    println!("{common} texts in common, {accepted} drafts stood");
    assert!(accepted > 0, "no draft stood");
}
